"""What an error's details say in Korean: reasons and problems are made where they are found, in English, and put into Korean
where they are shown. A catalogue from English template to Korean one; names and numbers stand at `{}` or `{0}`.

A test reads the source for every such text and demands its line here. No other text belongs here: see `errors` and `report/words`.
"""

from __future__ import annotations

import re
from functools import cache

_CATALOGUE = {
    # kinds of things with names
    "metric": "지표", "system": "시스템", "judge": "심판", "dataset": "데이터셋", "item": "항목", "field": "필드",
    "field of the file": "파일의 필드", "column": "열", "format": "형식", "file format": "파일 형식", "sheet format": "시트 형식",
    "chart": "차트", "configuration": "설정", "dataset version": "데이터셋 버전", "G-Eval metric": "G-Eval 지표",
    "metric for label sheets": "라벨 시트를 만들 수 있는 지표", "option of metric {}": "지표 {}의 옵션", "release of {}": "{}의 릴리스",
    "field that metric {} can need": "지표 {}에 필요할 수 있는 필드",
    "annotator name (letters, digits, Hangul, `.` and `_`)": "주석자 이름(글자, 숫자, 한글, `.`, `_`)",
    "dataset name (letters, digits, Hangul, `.` and `_`)": "데이터셋 이름(글자, 숫자, 한글, `.`, `_`)",
    "part name (letters, digits, Hangul, `.` and `_`)": "분할 이름(글자, 숫자, 한글, `.`, `_`)",
    # the command line
    "No such option: {}": "{} 옵션은 없습니다.", "No such option: {} (Possible options: {})": "{} 옵션은 없습니다. 비슷한 옵션: {}.",
    "No such command {}.": "{} 명령은 없습니다.", "No such command {}. Did you mean {}?": "{} 명령은 없습니다. {}인가요?",
    "Missing argument {}.": "인자 {}이(가) 없습니다.", "Missing option {}.": "옵션 {}이(가) 없습니다.", "Missing command.": "명령이 없습니다.",
    "Invalid value for {}: {}": "{} 값이 잘못되었습니다: {}.", "{} is not one of {}.": "{}은(는) {} 가운데 없습니다",
    "Got unexpected extra argument(s) ({})": "남는 인자가 있습니다: {}.",
    "Option {} requires an argument.": "옵션 {}에는 값이 필요합니다.", "Option {} does not take a value.": "옵션 {}에는 값을 쓰지 않습니다.",
    # evaluation.yaml
    "unknown key": "모르는 키", "unknown key; did you mean {}?": "모르는 키입니다. {}인가요?",
    "the file must be a mapping of keys (version, datasets, ...)": "파일은 키(version, datasets, ...)로 이루어져야 합니다",
    "not YAML: {}": "YAML이 아닙니다: {}", "source {} needs `{}`": "source {}에는 `{}`이(가) 필요합니다",
    "`batch` needs an endpoint; provider {} has none": "`batch`에는 엔드포인트가 필요한데 provider {}에는 없습니다",
    "no {} here; known: {}": "{}이(가) 없습니다. 사용할 수 있는 이름: {}",
    "fewer than {} frozen items show nothing; 0 turns the canary off": "고정 항목이 {}개보다 적으면 아무것도 보이지 않습니다. 0이면 카나리를 끕니다",
    "a metric file has a function `declare(**options) -> Metric`": "지표 파일에는 함수 `declare(**options) -> Metric`이 있어야 합니다",
    "environment variable(s) {} not set; set them, or put them into .env": "환경 변수 {}이(가) 없습니다. 지정하거나 .env에 적으세요",
    "environment variable {} is not set (it holds the API key)": "API 키를 담을 환경 변수 {}이(가) 없습니다",
    "environment variable {} is not set": "환경 변수 {}이(가) 없습니다",
    "and {} more": "그 밖에 {}건",
    "a whole number above zero": "0보다 큰 정수",
    "a folder, or a URL of a file system that fsspec knows, such as s3://bucket/warehouse": "폴더, 또는 fsspec이 아는 파일 시스템의 URL(예: s3://bucket/warehouse)",
    # what pydantic says of a value
    "Field required": "꼭 필요합니다", "Value error, {}": "{}", "Input should be a valid string": "글자여야 합니다",
    "Input should be a valid number": "숫자여야 합니다", "Input should be a valid integer": "정수여야 합니다",
    "Input should be a valid number, unable to parse string as a number": "숫자여야 합니다",
    "Input should be a valid integer, unable to parse string as an integer": "정수여야 합니다",
    "Input should be a valid boolean": "true나 false여야 합니다", "Input should be a valid boolean, unable to interpret input": "true나 false여야 합니다",
    "Input should be a valid dictionary": "키와 값의 묶음이어야 합니다", "Input should be a valid dictionary or instance of {}": "키와 값의 묶음이어야 합니다",
    "Input should be a valid list": "목록이어야 합니다", "Input should be a valid tuple": "목록이어야 합니다",
    "Input should be greater than {}": "{}보다 커야 합니다", "Input should be greater than or equal to {}": "{} 이상이어야 합니다",
    "Input should be less than {}": "{}보다 작아야 합니다", "Input should be less than or equal to {}": "{} 이하여야 합니다",
    "Input should be {}": "{}이어야 합니다",
    # datasets and files
    "its encoding is none of UTF-8, UTF-16 and cp949": "인코딩이 UTF-8, UTF-16, cp949 가운데 어느 것도 아닙니다",
    "a folder; name one file": "폴더입니다. 파일 하나를 지정하세요",
    "a folder, and not a saved Hugging Face dataset: {}; name one file": "저장된 Hugging Face 데이터셋이 아닌 폴더입니다: {}. 파일 하나를 지정하세요",
    "no such file": "파일이 없습니다", "No such file or directory": "파일이 없습니다", "Permission denied": "권한이 없습니다",
    "Is a directory": "폴더입니다", "Not a directory": "폴더가 아닙니다", "No space left on device": "디스크가 가득 찼습니다",
    "Read-only file system": "읽기 전용 파일 시스템입니다",
    "not JSON": "JSON이 아닙니다", "not JSON: {}": "JSON이 아닙니다: {}", "{} is not JSON": "{}은(는) JSON이 아닙니다",
    "not JSON in UTF-8": "UTF-8로 된 JSON이 아닙니다", "not a JSON object": "JSON 객체가 아닙니다",
    "a {}, not a JSON object": "{}이며 JSON 객체가 아닙니다", "a {}, not an object with fields": "{}이며 필드가 있는 객체가 아닙니다",
    "line {} is not a JSON object": "{}번째 줄이 JSON 객체가 아닙니다", "line {} is not JSON ({})": "{}번째 줄이 JSON이 아닙니다({})",
    "not a list of objects": "객체의 목록이 아닙니다", "the number {} is too large": "숫자 {}이(가) 너무 큽니다",
    "a field occurs twice in one object": "한 객체에 같은 필드가 두 번 나옵니다", "a column name occurs twice": "같은 열 이름이 두 번 나옵니다",
    "half of a surrogate pair is no character": "반쪽짜리 서로게이트는 글자가 아닙니다", "no header line": "머리글 줄이 없습니다",
    "{} cells where the header has {}": "칸이 {}개인데 머리글은 {}개입니다", "a cell under no column name": "열 이름이 없는 칸이 있습니다",
    "not a spreadsheet: {}": "스프레드시트가 아닙니다: {}", "not a Parquet file: {}": "Parquet 파일이 아닙니다: {}",
    "not an Arrow file: {}": "Arrow 파일이 아닙니다: {}", "no rows": "행이 없습니다", "lacks {}": "{}이(가) 없습니다",
    "content_sha256 is not that of texts": "content_sha256이 texts의 해시와 다릅니다",
    "{} has {} characters and a spreadsheet cell holds {}; use another format": "{}은(는) {}자인데 스프레드시트 칸에는 {}자까지 들어갑니다. 다른 형식을 쓰세요",
    "{} is not OURS=THEIRS": "{}은(는) 우리필드=원래필드 꼴이 아닙니다",
    "row {}: a human score without its metric; add --metric NAME": "{}행: 사람 점수에 지표가 없습니다. --metric 이름을 붙이세요",
    "row {}: human_score {} is neither in [0, 1] nor a grade of {}": "{0}행: human_score {1}은(는) 0~1도 아니고 {2}의 등급도 아닙니다",
    "{} is not NAME=SHARE with a positive share and a name of its own, as in train=0.8,test=0.2":
        "{}은(는) 이름=비율 꼴이 아닙니다. 비율은 0보다 크고 이름은 서로 달라야 합니다. 예: train=0.8,test=0.2",
    "{} where a list of texts belongs": "글 목록이 들어갈 자리에 {}이(가) 있습니다",
    "contexts given as one string; say how to read it with --contexts-as json|python|lines|text":
        "문맥이 문자열 하나로 되어 있습니다. 읽는 방법을 --contexts-as json|python|lines|text로 알려 주세요",
    "a list of contexts holds something that is not text": "문맥 목록에 글이 아닌 것이 있습니다",
    "an object with {}; say which holds the texts, as in --map reference_contexts=FIELD.NAME":
        "{}이(가) 있는 객체입니다. 글이 어디에 있는지 알려 주세요. 예: --map reference_contexts=필드.이름",
    "no known schema has the fields {}; name them: --map user_input=FIELD --map reference=FIELD":
        "{} 필드를 가진 알려진 형식이 없습니다. 어느 것인지 알려 주세요: --map user_input=필드 --map reference=필드",
    "empty; give every row one, or leave the column out": "비어 있습니다. 모든 행에 적거나 열을 빼세요",
    "{} holds a control character": "{}에 제어 문자가 있습니다", "{} where text belongs": "글이 들어갈 자리에 {}이(가) 있습니다",
    "there is no question": "질문이 없습니다", "{} is neither ko nor en": "{}은(는) ko도 en도 아닙니다",
    "{} is not a number": "{}은(는) 숫자가 아닙니다", "{} is also on line {}": "{}은(는) {}번째 줄에도 있습니다",
    # labels
    "no sheet of this dataset ({})": "이 데이터셋의 시트가 아닙니다({})", "no column `sheet`": "`sheet` 열이 없음",
    "its content_sha256 is of no text that was handed out in this sheet": "content_sha256이 이 시트로 나누어 준 어느 텍스트와도 다릅니다",
    "the sheet shows its text only in part; label it on the HTML page": "시트에 텍스트가 일부만 보입니다. HTML 페이지에서 라벨링하세요",
    "the text of {} was changed": "{}의 글이 바뀌었습니다", "score {} is not one of the scale: {}": "점수 {}은(는) 척도에 없습니다: {}",
    "{}: two scores for one text, {} and {}": "{}: 한 텍스트에 점수가 둘입니다: {}, {}",
    "the texts of {} are not those that {} scored": "{}의 글은 {}이(가) 채점한 것과 다릅니다",
    "{}; run the evaluation again": "{}. 평가를 다시 실행하세요",
    "labels changed since {}, and so did the judge, its prompts or a metric; `eval-pipeline run` calibrates it":
        "{} 이후 라벨이 바뀌었고 심판이나 프롬프트나 지표도 바뀌었습니다. `eval-pipeline run`이 다시 보정합니다",
    "the judge is {} too high on average": "심판이 평균 {}만큼 높게 줍니다", "the judge is {} too low on average": "심판이 평균 {}만큼 낮게 줍니다",
    "quadratic weighted kappa is {}: the levels disagree even where the ranks agree":
        "가중 카파가 {}입니다. 순위는 맞아도 등급은 어긋납니다",
    # why a judge is not certified
    "no_labels": "라벨 0개", "constructed_labels": "구성된 라벨은 아무것도 인증하지 않음", "model_labels": "모델이 만든 라벨은 아무것도 인증하지 않음", "mixed_labels": "사람 라벨이 없음",
    "n_too_small": "라벨이 부족함", "constant_labels": "라벨이 모두 같음", "few_off_modal_labels": "최빈 라벨 이외의 라벨이 10개 미만",
    "constant_judge": "심판이 한 가지 등급만 줌", "limits_include_bar": "신뢰 한계가 기준을 포함함", "labels_used_in_tuning": "조정에 사용된 라벨",
    # what became of a question
    "off_scale": "척도 밖", "unparseable": "읽을 수 없음", "truncated": "잘림", "empty": "빈 답변", "too_long": "너무 김",
    "provider_error": "제공자 오류", "timeout": "시간 초과", "not_asked": "묻지 않음", "skipped": "건너뜀",
    # judges
    "an NLI model only says whether a text supports a claim, and {} asks {}; give {} another `judge`":
        "NLI 모델은 글이 주장을 뒷받침하는지만 말하는데 {0}은(는) {1}을(를) 묻습니다. {2}에 다른 `judge`를 지정하세요",
    "an NLI model cannot make the claims {} is about; let another be the run's judge and write `{}: {judge: {}}`":
        "NLI 모델은 {}에 필요한 주장을 만들 수 없습니다. 실행의 심판은 다른 것으로 하고 `{}: {judge: {}}`라고 쓰세요",
    "provider `nli` needs `path`, the folder of a local model": "provider `nli`에는 로컬 모델 폴더 `path`가 필요합니다",
    "provider `recorded` needs `path`": "provider `recorded`에는 `path`가 필요합니다",
    "it writes no text of its own; name a judge with an endpoint by --judge": "글을 쓰지 못하는 심판입니다. 엔드포인트가 있는 심판을 --judge로 지정하세요",
    "it gave no evaluation steps ({})": "평가 단계를 내놓지 않았습니다({})",
    "id2label of config.json names no entailment ({})": "config.json의 id2label에 entailment가 없습니다({})",
    "model.onnx wants inputs that are not known: {}": "model.onnx가 모르는 입력을 요구합니다: {}", "{} has no {}": "{}에 {}이(가) 없습니다",
    "config.json is not a JSON object: {}": "config.json이 JSON 객체가 아닙니다: {}",
    "model.onnx cannot be loaded: {}": "model.onnx를 불러올 수 없습니다: {}", "tokenizer.json cannot be read: {}": "tokenizer.json을 읽을 수 없습니다: {}",
    "{} needs template_id, inputs and reply ({})": "{}에는 template_id, inputs, reply가 필요합니다({})",
    "cannot read {}: {}": "{}을(를) 읽을 수 없습니다: {}", "no embeddings: {}, {}": "임베딩을 받지 못했습니다: {}, {}",
    "there is no such prompt": "그런 프롬프트가 없습니다", "needs `system` and `user`: {}": "`system`과 `user`가 필요합니다: {}",
    "batch: {}": "배치: {}", "refused": "거부됨", "check the API key": "API 키를 확인하세요",
    "the key may not use this model or endpoint": "이 키로는 이 모델이나 엔드포인트를 쓸 수 없습니다",
    "check `base_url` and the model name": "`base_url`과 모델 이름을 확인하세요",
    "the quota is used up; raise it or wait": "할당량을 다 썼습니다. 늘리거나 기다리세요", "HTTP {} refused": "HTTP {} 거부됨",
    "{} calls": "호출 {}건",
    # systems
    "it has no `request`": "`request`가 없습니다", "cannot start the program: {}": "프로그램을 시작할 수 없습니다: {}",
    "the reply is larger than {} bytes": "응답이 {}바이트보다 큽니다", "header {} has a line break or control character": "헤더 {}에 줄바꿈이나 제어 문자가 있습니다",
    "HTTP {}: redirects are not followed; put the final address into request.url": "HTTP {}: 리디렉션은 따라가지 않습니다. 최종 주소를 request.url에 적으세요",
    "request.url must begin with http:// or https:// and a host": "request.url은 http:// 또는 https://와 호스트로 시작해야 합니다",
    "response.{} {} is not a JSONPath": "response.{} {}은(는) JSONPath가 아닙니다", "release.path {} is not a JSONPath": "release.path {}은(는) JSONPath가 아닙니다",
    "another run of this evaluation is at work": "이 평가의 다른 실행이 진행 중입니다",
    "the program wrote a line longer than {} bytes": "프로그램이 {}바이트보다 긴 줄을 썼습니다",
    "function {} is not of the form module:function": "함수 {}이(가) 모듈:함수 꼴이 아닙니다", "cannot load {}: {}": "{}을(를) 불러올 수 없습니다: {}",
    "{} is {}, not a function": "{}은(는) {}이며 함수가 아닙니다", "item_id {} occurs twice": "item_id {}이(가) 두 번 나옵니다",
    "item_id is missing": "item_id가 없습니다", "item_id is not text": "item_id가 글이 아닙니다",
    "path {} leaves the project; move the file, or give its absolute path": "경로 {}이(가) 프로젝트 밖입니다. 파일을 옮기거나 절대 경로를 쓰세요",
    "has both a response and an error": "응답과 오류가 모두 있습니다", "the release URL must be http or https": "릴리스 URL은 http나 https여야 합니다",
    "the release URL cannot be reached ({})": "릴리스 URL에 연결할 수 없습니다({})", "the release URL answered HTTP {}": "릴리스 URL이 HTTP {}로 답했습니다",
    "the release URL's reply is not JSON": "릴리스 URL의 응답이 JSON이 아닙니다",
    "the release URL's reply has no text or number at {}": "릴리스 URL의 응답에서 {} 자리에 글이나 숫자가 없습니다",
    "error is {}, not text": "error가 글이 아니라 {}입니다", "response is {}, not text": "response가 글이 아니라 {}입니다",
    "retrieved_contexts is not a list of texts": "retrieved_contexts가 글 목록이 아닙니다",
    "latency_seconds is not a number of seconds": "latency_seconds가 초를 나타내는 숫자가 아닙니다", "{} is not a count": "{}은(는) 개수가 아닙니다",
    "source `openai` needs a chat model, and none was given": "source `openai`에는 채팅 모델이 필요합니다",
    "{} holds no response to any of the {} items of {}; name its own --system": "{0}에는 {2}의 항목 {1}개에 대한 응답이 하나도 없습니다. 맞는 --system을 지정하세요",
    "without {}": "{} 제외", "limited to {} items": "항목 {}개로 제한",
    # results
    "a warehouse in a bucket is published to a local folder; name it": "버킷에 있는 창고는 로컬 폴더에 게시합니다. 폴더를 지정하세요",
    "{} holds a date outside the years 1 to 9999; cast it to varchar": "{}에 1~9999년을 벗어난 날짜가 있습니다. varchar로 바꾸세요",
}  # fmt: skip


@cache
def _patterns() -> tuple[tuple[int, re.Pattern[str], str], ...]:
    """The catalogue as patterns, those with the most fixed text first, each with the length of it."""
    fixed = {english: len(english.replace("{}", "")) for english in _CATALOGUE}
    return tuple(
        (fixed[english], re.compile("(.+?)".join(map(re.escape, english.split("{}"))), re.DOTALL), _CATALOGUE[english])
        for english in sorted(_CATALOGUE, key=lambda english: -fixed[english])
    )


def in_korean(text: str) -> str:
    """A detail in Korean, line by line, places such as `items.csv:3: ` kept; what the catalogue does not know stays as it is."""
    if "\n" in text:
        return "\n".join(map(in_korean, text.split("\n")))
    # The text may begin with places. A pattern that begins with fixed text says where it begins, and the first such counts;
    # of the others, the one with the most fixed text, as late as it fits.
    starts = [0, *(place.end() for place in re.finditer(r"^ +|: ", text))]
    fits = [
        ((True, -start, length) if pattern.pattern[0] != "(" else (False, length, start), start, found, korean)
        for start in starts
        for length, pattern, korean in _patterns()
        if (found := pattern.fullmatch(text, start))
    ]
    if not fits:
        return "; ".join(map(in_korean, text.split("; "))) if "; " in text else text
    _, start, found, korean = max(fits, key=lambda fit: fit[0])
    parts = [in_korean(part) for part in found.groups()]
    filled = iter(parts)
    return text[:start] + re.sub(r"\{(\d?)\}", lambda at: parts[int(at[1])] if at[1] else next(filled), korean)
