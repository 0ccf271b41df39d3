-- Requeues jobs that were taken ahead with another, and were not begun: they wait for their turn
-- again.
--
-- ARGV     1 namespace, 2.. see read_call, then see release_ahead
-- Returns  1; a job that is not the worker's (any more) is left as it is
local call, first = read_call()
release_ahead(call, first)
leave_index(call, 0)
return 1
