-- What each dataset version added, removed and changed, with who said why, oldest first
select v.created_at, c.dataset, v.tag, c.dataset_version, c.item_id, c.change, c.fields, v.message, v.author
from dataset_changes c join dataset_versions v on v.dataset = c.dataset and v.dataset_version = c.dataset_version
order by v.created_at, c.dataset, c.item_id
