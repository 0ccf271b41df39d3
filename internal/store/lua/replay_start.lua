-- Begins a replay for a subscriber.
--
-- ARGV     namespace; replayArgs of replay.go
-- Returns  {1}; {0, 'not subscribed'} to the topic; {0, 'running'} while another of the topic is,
--          or if there is one of this UID; {0, 'too many'} if the maximum is kept and none may go
-- Keeps    a replay in the sets of its subscriber and of the running replays
local token, id, topic, first, last, now, max_kept, asked = unpack(ARGV, 2, 9)
token = holder_of(token)
if redis.call('SISMEMBER', subscriber_topics_key(token), topic) == 0 then
  return { 0, 'not subscribed' }
end
if redis.call('EXISTS', replay_key(id)) == 1 then return { 0, 'running' } end
local expired, kept, oldest = {}, 0, nil
for _, other in ipairs(redis.call('SMEMBERS', replays_key(token))) do
  local found = redis.call('HMGET', replay_key(other), 'state', 'topic', 'created_at')
  if not found[1] then
    table.insert(expired, other)
  elseif found[1] == 'running' and found[2] == topic then
    return { 0, 'running' }
  else
    kept = kept + 1
    local created = tonumber(found[3]) or 0
    local over = redis.call('SISMEMBER', running_replays_key(), other) == 0
    if over and (not oldest or created < oldest.created) then
      oldest = { id = other, created = created }
    end
  end
end
local makes_room = kept >= tonumber(max_kept)
if makes_room and not oldest then return { 0, 'too many' } end

redis.call('HSET', replay_key(id), 'token', token, 'topic', topic, 'next', first, 'to', last,
  'copied', 0, 'skipped', 0, 'state', 'running', 'created_at', now, 'asked', asked)
redis.call('SADD', running_replays_key(), id)
redis.call('SADD', replays_key(token), id)
redis.call('PERSIST', replays_key(token))
if makes_room then remove_replay(token, oldest.id) end
for _, other in ipairs(expired) do redis.call('SREM', replays_key(token), other) end
return { 1 }
