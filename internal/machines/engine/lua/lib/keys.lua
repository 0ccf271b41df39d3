-- The keys of machines and labels, as in keys.go; a test holds the two together.
local function definitions_key() return ns .. 'machines:definitions' end
local function walks_key() return ns .. 'machines:walks' end
local function label_key(machine, name) return ns .. 'machines:label:' .. machine .. '/' .. name end
local function metadata_key(machine, name)
  return ns .. 'machines:metadata:' .. machine .. '/' .. name
end
local function history_key(machine, name)
  return ns .. 'machines:history:' .. machine .. '/' .. name
end
local function names_key(machine) return ns .. 'machines:names:' .. machine end
local function labels_key(machine, state)
  return ns .. 'machines:labels:' .. machine .. ':' .. state
end
local function errored_key(machine) return ns .. 'machines:errored:' .. machine end
local function outbox_key(machine) return ns .. 'machines:outbox:' .. machine end
local function published_key(machine) return ns .. 'machines:published:' .. machine end
local function standings_key(machine) return ns .. 'machines:standings:' .. machine end
