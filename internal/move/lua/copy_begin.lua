-- Notes that a subscriber is held, and that its copy has only begun: it may lack something. Held it
-- is from here on, so that it never is not, even if two moves run at once.
--
-- ARGV     1 namespace, 2 token
-- Returns  {1}
redis.call('HSET', plans_key(), held_field(ARGV[2]), '')
return { 1 }
