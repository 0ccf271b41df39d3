-- Makes the machines' own client unless it is there.
--
-- ARGV     1 namespace, 2 its name, 3 the callback of its subscription, 4 its tokens in other
--          partitions, see own_token, 5 a token that nobody has
-- Returns  {1, its token}
return { 1, ensure_token(ARGV[2], ARGV[3], ARGV[4], ARGV[5]) }
