-- The queue's keys, as in keys.go; a test holds the two together. Every script has the namespace
-- (the prefix of all keys) as its first argument. No script declares KEYS: which keys an entry
-- concerns is only known inside.
local ns = ARGV[1]
local function jobs_index_key(queue) return ns .. 'jobs:index:' .. queue end
local function scheduled_key(queue) return ns .. 'jobs:scheduled:' .. queue end
local function instant_key(queue) return ns .. 'jobs:instant:' .. queue end
local function pending_key(queue, worker) return ns .. 'jobs:pending:' .. queue .. ':' .. worker end
local function pending_index_key(queue) return ns .. 'jobs:pending:index:' .. queue end
local function lane_key(kind, name) return ns .. 'jobs:lane:' .. kind .. ':' .. name end
local function max_in_flight_key() return ns .. 'jobs:max_in_flight' end
local function workers_key() return ns .. 'workers' end
