-- What the checks share. Each looks at one thing in one step and returns what is wrong with it;
-- asked to fix it, it does so in the same step. Asked only to look, it writes nothing.
local fix = ARGV[2] == '1'
if fix then allow_when_full() end

local function is_original(bid) return redis.call('EXISTS', original_key(bid)) == 1 end

-- Whether publish finds a subscriber.
local function has_callback(token)
  return (redis.call('HGET', subscriber_key(token), 'callback') or '') ~= ''
end

-- What is wrong with a batch that a subscriber's key lists: 'gone', 'alien', or nil.
local function wrong_for(token, bid)
  if redis.call('EXISTS', batch_key(bid)) == 0 then return 'gone' end
  if holder_of(redis.call('LINDEX', batch_key(bid), 0)) ~= token then return 'alien' end
  return nil
end
