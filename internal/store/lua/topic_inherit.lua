-- Prepares topics for the end of their publisher's token: notes whose they are, and gives them to
-- another token of the same client, if there is one.
--
-- ARGV     1 namespace, 2 token, 3 another token of the same client, empty for none, 4.. topics
-- Returns  how many of the topics are the token's
allow_when_full()
local token, heir, theirs = ARGV[2], ARGV[3], {}
local name = redis.call('HGET', tokens_key(), token)
if not name then return 0 end
if heir ~= '' and redis.call('HGET', tokens_key(), heir) ~= name then heir = '' end
for i = 4, #ARGV do
  if redis.pcall('HGET', topic_key(ARGV[i]), 'publisher') == token then
    table.insert(theirs, ARGV[i])
  end
end
for _, topic in ipairs(theirs) do
  owners().set(topic, name)
  if heir ~= '' then redis.call('HSET', topic_key(topic), 'publisher', heir) end
end
return #theirs
