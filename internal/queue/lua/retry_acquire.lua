-- Has a job that a worker has pending run again, and takes the next: see complete_acquire.lua.
--
-- ARGV     1 namespace, 2.. see read_call, then see release, then when to run it (ms), then see
--          acquire
-- Returns  see acquire_next
local call, first = read_call()
local entry, next = release(call, first)
if entry then retry(entry, ARGV[next]) end
return acquire_next(call, entry, next + 1)
