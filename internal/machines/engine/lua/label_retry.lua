-- Retries the action of an errored label, from its first attempt.
--
-- ARGV     1 namespace, 2 machine, 3 name, 4 traceparent or ''
-- Returns  {1}; {0, 'unknown label'}, {0, 'deleted'}, {0, 'not errored'}
local machine, name = ARGV[2], ARGV[3]
local label = read_label(machine, name)
local refusal = refusal_of(label)
if refusal then return { 0, refusal } end
if not label.errored then return { 0, 'not errored' } end
redis.call('HDEL', label_key(machine, name), 'errored_at', 'attempts')
redis.call('ZREM', errored_labels_key(machine), name)
trace(machine, name, ARGV[4], label.values[TRACEPARENT])
note_hops(machine, name, '0', label.values[HOPS])
ask(machine, name, 'retry')
return { 1 }
