-- Wakes the jobs of a type that wait although they have their turn.
--
-- ARGV     1 namespace, 2 name, 3 how many of them to leave out, from the first, 4 max jobs to wake
-- Returns  the number of jobs that it has looked at
allow_when_full()
local type = read_type(ARGV[2])
return type and wake(type, tonumber(ARGV[4]), tonumber(ARGV[3])) or 0
