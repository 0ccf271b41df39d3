-- The jobs' keys, as in keys.go; a test holds the two together.
local function types_key() return ns .. 'work:types' end
local function types_of_key(owner) return ns .. 'work:types:of:' .. owner end
local function type_key(name) return ns .. 'work:type:' .. name end
local function schedules_key() return ns .. 'work:schedules' end
local function job_key(id) return ns .. 'work:job:' .. id end
local function data_key(id) return ns .. 'work:data:' .. id end
local function copies_key(id) return ns .. 'work:copies:' .. id end
local function open_key(name) return ns .. 'work:open:' .. name end
local function archive_key(name, status) return ns .. 'work:archive:' .. name .. ':' .. status end
local function removed_key(name, id) return ns .. 'work:removed:' .. name .. ':' .. id end
local function pulls_key() return ns .. 'work:pulls' end
