-- Stores a subscription: omitted fields keep their value, or take their default. A current batch
-- does not wait longer than the new timeout, or take in more events than the new maximum, and the
-- bus tries a subscriber whose deliveries fail at once.
--
-- ARGV     1 namespace, 2.. see lib/subscriptions.lua, with a callback and topics
-- Returns  {1}; {0, 'token unknown'}; {0, "client's topics"} when the client would have named too
--          many, {0, "bus's topics"} when the bus would have too many
--          {0, 'lanes change'} when batches of too many earlier lanes remain
--          {0, 'former letters'} or {0, 'former batches'} when a token that is no subscriber has
--          some of an earlier subscription: this script removes a slice of the letters, and
--          batch_drop the batches
-- Keeps    topics:{token} and subscribers:{name} each other's mirror; an error, because a key is
--          not of its type, changes no subscription; the version of the options,
--          if none changes
local sent = read_subscription()
local name = redis.call('HGET', tokens_key(), sent.token)
if not name then return { 0, 'token unknown' } end
return put_subscription(sent, name)
