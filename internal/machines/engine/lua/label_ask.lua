-- Queues a label that is in a state for a worker.
--
-- ARGV     1 namespace, 2 machine, 3 name, 4 state, 5 trigger, 6 traceparent or ''
-- Returns  {1}; {0, 'unknown label'}, {0, 'deleted'}, {0, 'changed'} if it is in another state
local label = read_label(ARGV[2], ARGV[3])
local refusal = refusal_of(label)
if refusal then return { 0, refusal } end
if label.state ~= ARGV[4] then return { 0, 'changed' } end
trace(label.machine, label.name, ARGV[6], label.values[TRACEPARENT])
note_hops(label.machine, label.name, '0', label.values[HOPS])
ask(label.machine, label.name, ARGV[5])
return { 1 }
