-- Wakes the jobs of a type that wait although they have their turn.
--
-- ARGV     1 namespace, 2 name, 3 '1' to begin with the first of them, else to go on
-- Returns  1 if there may be more, which steps of the type's jobs wake, or the next call
allow_when_full()
local type = read_type(ARGV[2])
if not type then return 0 end
if ARGV[3] == '1' then
  wake(type)
elseif type.wake_from then
  go_on_waking(type)
end
return type.wake_from and 1 or 0
