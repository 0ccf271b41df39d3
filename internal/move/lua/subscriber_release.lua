-- Has the deliveries to a subscriber begin where the bus has moved to: nothing is left for it where
-- the bus was. If its client has paused it, it stays so. One that is not held is left as it is.
--
-- ARGV     1 namespace, 2 token, 3.. as 4.. of subscriber_hold.lua, without the secrets
-- Returns  {1}; also when it is not held: that may still have to be confirmed
if release_held(ARGV[2]) then put_record(ARGV[2], ARGV[3], ARGV[4], ARGV[5]) end
return { 1 }
