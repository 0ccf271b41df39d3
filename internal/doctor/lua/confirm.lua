-- Confirms that something does not fit, at one moment, and repairs it in the same step.
--
-- ARGV     1 namespace, 2 '1' to repair it, 3 the number of checks; the checks: 'is' or 'not', a
--          value, and a command; then the commands that repair it. A command is the number of its
--          words, and these; COMMANDS below has some beside those of Redis
-- Returns  1 if all checks hold: if a reply is the value ('' for nothing), or is not. A check that
--          fails, because a key is of another type, does not hold
-- Keeps    what has changed since the caller looked: then a check does not hold
local next_argument = 4

local function sum_of_accounts(key)
  local sum, fields = 0, redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    if string.find(fields[i], '^[%w:_-]') then sum = sum + (tonumber(fields[i + 1]) or 0) end
  end
  return sum
end

local COMMANDS = {
  -- How many workers of the index have a job.
  HOLDERS = function(queue, job)
    local holders = 0
    for _, worker in ipairs(redis.call('SMEMBERS', pending_index_key(queue))) do
      if redis.call('LPOS', pending_key(queue, worker), job) then holders = holders + 1 end
    end
    return holders
  end,
  -- The token that a batch's subscriber has now.
  HOLDER = function(bid) return holder_of(redis.call('LINDEX', batch_key(bid), 0)) end,
  REMOVE_BATCH = function(bid)
    local token = redis.call('LINDEX', batch_key(bid), 0)
    remove_batch(bid, token, events_of(bid), noted_max_in_flight(), true, true)
  end,
  LEAVE_LANE = function(lane, job) leave_lane(lane, 'main', noted_max_in_flight(), job) end,
  WAKE_LANE = function(lane) wake_lane(lane, 'main', 1) end,
  -- Whether the total differs from the sum of all accounts.
  ACCOUNTS_DIFFER = function(key)
    return tonumber(redis.call('HGET', key, '*')) == sum_of_accounts(key) and 0 or 1
  end,
  -- Has a client keep so many bytes.
  SET_ACCOUNT = function(client, bytes)
    local account = account_of(client)
    charge(account, bytes - account.kept)
  end,
  ADD_ACCOUNTS = function(key) redis.call('HSET', key, '*', exact(sum_of_accounts(key))) end,
  REMOVE_SUBSCRIBER = remove_subscriber,
}

local function next_command()
  local length, words = tonumber(ARGV[next_argument]), {}
  for i = 1, length do words[i] = ARGV[next_argument + i] end
  next_argument = next_argument + length + 1
  return words
end

local function run(words)
  local own = COMMANDS[words[1]]
  if own then return own(unpack(words, 2)) end
  return redis.call(unpack(words))
end

local function holds()
  local wanted, value = ARGV[next_argument] == 'is', ARGV[next_argument + 1]
  next_argument = next_argument + 2
  local answered, reply = pcall(run, next_command())
  if not answered then return false end
  return (tostring(reply or '') == value) == wanted
end

for _ = 1, tonumber(ARGV[3]) do
  if not holds() then return 0 end
end
if ARGV[2] == '1' then
  allow_when_full()
  while next_argument <= #ARGV do run(next_command()) end
end
return 1
