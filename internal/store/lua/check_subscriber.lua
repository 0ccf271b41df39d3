-- Checks that a subscriber has a callback, and that one that has a hash is in the set of subscribers.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 token, 4.. topics whose subscribers it may be among
-- Returns  what is wrong: {}, or one of {'subscriber_unlisted'}, {'subscriber_idle'}, {'subscriber_remains'},
--          {'subscriber_silent'}, {'subscriber_foreign'}, {'subscriber_foreign_listed'}
-- Keeps    a subscriber that may still be meant: one with a callback, which is all that publish asks for; and what is not
--          one of the bus's
local token = ARGV[3]
local key = subscriber_key(token)
local listed = redis.call('SISMEMBER', subscribers_key(), token) == 1
local exists = redis.call('EXISTS', key) == 1
local callback = redis.call('HGET', key, 'callback')
if callback == '' then callback = false end
if listed and callback then return {} end
if not listed and not exists then return {} end

local ours = is_token(token) and has_only(key, { 'callback', 'timeout', 'max_events', 'uuid', 'health_points',
  'last_attempted_at' })
if ours and not callback then -- if it goes these go with it
  for _, name in ipairs(redis.call('SMEMBERS', subscriber_topics_key(token))) do
    if not is_topic_name(name) then ours = false end
  end
  for _, bid in ipairs(redis.call('SMEMBERS', current_key(token))) do
    if not is_uid(bid) then ours = false end
  end
end
if not ours then
  if listed then return { 'subscriber_foreign_listed' } end
  return { 'subscriber_foreign' }
end

local wrong = 'subscriber_silent'
if not listed then
  local served = is_known(token)
  for i = 4, #ARGV do
    if redis.call('SISMEMBER', topic_subscribers_key(ARGV[i]), token) == 1 then served = true end
  end
  if callback and served then
    wrong = 'subscriber_unlisted'
  elseif callback then
    return { 'subscriber_idle' }
  elseif redis.call('HEXISTS', tokens_key(), token) == 1 then
    wrong = 'subscriber_remains'
  else
    return { 'subscriber_foreign' }
  end
end
if fix then
  redis.call('SADD', subscribers_key(), token)
  if wrong ~= 'subscriber_unlisted' then remove_subscriber(token) end
end
return { wrong }
