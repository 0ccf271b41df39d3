-- Checks that a topic that has a hash is in the set of topics.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 topic
-- Returns  what is wrong: {} or one of {'topic_unlisted'}, {'topic_foreign'}, {'topic_foreign_listed'}
-- Keeps    a hash that is not one of the bus's
local name = ARGV[3]
if redis.call('EXISTS', topic_key(name)) == 0 then return {} end
local listed = redis.call('SISMEMBER', topics_key(), name) == 1
if not is_topic_hash(name) then
  if listed then return { 'topic_foreign_listed' } end
  return { 'topic_foreign' }
end
if listed then return {} end
if fix then redis.call('SADD', topics_key(), name) end
return { 'topic_unlisted' }
