-- Accounts of the bytes that clients keep in Redis, and their limits: see account.go.

-- The account of a client, '' for root's. A script reads it before it writes anything, and charges
-- it last: so nothing is charged for a change that fails. Accounts that are damaged begin anew.
local function account_of(client)
  if client == '' then client = 'root' end
  local found = redis.pcall('HMGET', accounts_key(), client, '#' .. client, '*', '*high', '*limit',
    '*limit/' .. client, '*elsewhere', '~' .. client)
  local damaged = found.err
  if damaged then found = {} end
  return {
    client = client, kept = tonumber(found[1]) or 0, changes = tonumber(found[2]) or 0,
    total = tonumber(found[3]) or 0, high = tonumber(found[4]), most = tonumber(found[5]),
    named = tonumber(found[6]), elsewhere = tonumber(found[7]) or 0,
    own_elsewhere = tonumber(found[8]) or 0, damaged = damaged,
  }
end

-- How many bytes the client of an account may keep, nil for any number: its own limit, or a half of
-- the space that others leave below the high mark, and not more than the common limit.
local function limit_of(account)
  if account.named then return account.named end
  local limit = account.most
  if account.high then
    local others = account.total + account.elsewhere - account.kept - account.own_elsewhere
    local share = math.max(0, math.floor((account.high - others) / 2))
    limit = math.min(limit or share, share)
  end
  return limit
end

-- Why a client may not keep so many bytes more, as a script returns it; nil if it may.
local function refusal_of_account(account, bytes)
  if bytes <= 0 then return nil end
  local limit, kept = limit_of(account), account.kept + account.own_elsewhere
  if not limit or kept + bytes <= limit then return nil end
  return { 0, 'account full', account.client, exact(kept), exact(limit) }
end

-- Charges bytes to an account; a negative number discharges. Data kept before there were accounts
-- is charged to none, so the account never goes below 0.
local function charge(account, bytes)
  local kept = math.max(0, account.kept + bytes)
  if account.damaged then redis.call('DEL', accounts_key()) end
  account.total = math.max(0, account.total + kept - account.kept)
  account.kept, account.changes, account.damaged = kept, account.changes + 1, nil
  redis.call('HSET', accounts_key(), account.client, exact(kept), '#' .. account.client,
    exact(account.changes), '*', exact(account.total))
end

local EXPIRING = 14400000 -- ms, to which expiry times are rounded up

-- Schedules a discharge of bytes from an account at a time (ms), when Redis will have removed by
-- itself the data they were charged for: see release.lua. The step must still charge the account,
-- even by 0.
local function discharge_after(account, bytes, time)
  local field = '@' .. exact(math.ceil(time / EXPIRING) * EXPIRING) .. '/' .. account.client
  local left = redis.pcall('HINCRBY', accounts_key(), field, exact(bytes))
  if type(left) ~= 'number' or left < bytes then -- it was damaged
    redis.call('HSET', accounts_key(), field, exact(bytes))
  end
end
