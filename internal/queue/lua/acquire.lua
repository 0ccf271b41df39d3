-- Takes the next instant job of a queue for a worker, with its payload.
--
-- ARGV     1 namespace, 2.. see read_call, then see acquire
-- Returns  {discarded, poisoned, job, payload}: see acquire
-- Keeps    at most one pending job of a worker, and the worker in the index of those that may have
--          one; the order of each lane
-- Cost     commands: 11 for a batch of one event
allow_when_full()
return { acquire(read_call()) }
