-- The keys of the bus's data, as in keys.go; a test holds the two together. The queue's keys come
-- before.
local function topics_key() return ns .. 'topics' end
local function topic_key(name) return ns .. 'topic:' .. name end
local function topic_subscribers_key(name) return ns .. 'subscribers:' .. name end
local function owners_key() return ns .. 'topic_owners' end
local function owned_key() return ns .. 'topic_owners:counts' end
local function unused_key() return ns .. 'topic_owners:unused' end
local function plans_key() return ns .. 'plans' end
local function history_key(topic) return ns .. 'history:' .. topic end
local function history_limits_key(topic) return ns .. 'history:limits:' .. topic end
local function subscribers_key() return ns .. 'subscribers' end
local function subscriber_key(token) return ns .. 'subscriber:' .. token end
local function subscriber_topics_key(token) return ns .. 'topics:' .. token end
local function tokens_key() return ns .. 'api_tokens:by_token' end
local function rotations_key() return ns .. 'api_tokens:rotations' end
local function batch_key(bid) return ns .. 'batch:' .. bid end
local function original_key(bid) return ns .. 'batches:' .. bid end
local function current_key(token) return ns .. 'batches:current:' .. token end
local function current_of_lane_key(token, lane)
  if lane == 0 then return current_key(token) end
  return ns .. 'batches:current:' .. token .. '/' .. lane
end
local function traceparents_key(bid) return ns .. 'batches:traceparents:' .. bid end
local function failed_key(token) return ns .. 'batches:failed:' .. token end
local function delivery_key(token) return ns .. 'delivery:' .. token end
local function batch_state_key(bid) return ns .. 'batches:state:' .. bid end
local function options_key(token) return ns .. 'options:' .. token end
local function attempts_key(token) return ns .. 'attempts:' .. token end
local function dead_letters_key(token) return ns .. 'deadletters:index:' .. token end
local function dead_letter_key(bid) return ns .. 'deadletter:' .. bid end
local function dead_letter_cause_key(bid) return ns .. 'deadletter:why:' .. bid end
local function dead_letter_events_key() return ns .. 'deadletters:events' end
local function dead_letter_bytes_key() return ns .. 'deadletters:bytes' end
local function replay_key(id) return ns .. 'replay:' .. id end
local function replay_batches_key(id) return ns .. 'replays:batches:' .. id end
local function running_replays_key() return ns .. 'replays:running' end
local function replays_key(token) return ns .. 'replays:of:' .. token end
local function gaps_key(token) return ns .. 'gaps:' .. token end
local function retention_key() return ns .. 'retention' end
local function batches_index_key() return ns .. 'batches:index' end
local function event_gauge_key() return ns .. 'batches:gauges:event' end
local function batch_gauge_key() return ns .. 'batches:gauges:batch' end
local function bytes_gauge_key() return ns .. 'batches:gauges:bytes' end
local function idempotency_key(name, slice) return ns .. 'idempotency:' .. name .. '/' .. slice end
local function migration_key() return ns .. 'migration' end
local function counters_key() return ns .. 'counters' end
