-- Makes a label.
--
-- ARGV     1 namespace, 2 machine, 3 name, 4 now (ms), 5 the edition of the definitions, 6 the
--          first state, 7 metadata, 8 the trigger for which a worker is to look at it, '' for none,
--          9 how the move is published (see tell), 10 traceparent or '', 11 hops (see note_hops),
--          12 the client that makes it, '' for root
-- Returns  {1}; {0, 'exists'}, {0, 'deleted'}, {0, 'changed'} (the definitions), {0, 'closing'} if
--          other definitions without that state are about to come, {0, 'account full', ...}: the
--          client's account
-- Keeps    a label that is not deleted in the list of one state, and of its machine
local machine, name, now, state = ARGV[2], ARGV[3], ARGV[4], ARGV[6]
if not definitions_are(ARGV[5]) then return { 0, 'changed' } end
local label = read_label(machine, name)
if label then return { 0, label.deleted and 'deleted' or 'exists' } end
if is_closing(machine, state) then return { 0, 'closing' } end
local account, bytes = account_of(ARGV[12]), LABEL_BYTES + #ARGV[7]
local full = refusal_of_account(account, bytes)
if full then return full end
redis.call('SET', label_metadata_key(machine, name), ARGV[7])
redis.call('HSET', label_key(machine, name), 'state', state, 'created_at', now, 'entered_at', now,
  'by', account.client)
redis.call('ZADD', labels_in_key(machine, state), '0', name)
redis.call('ZADD', label_names_key(machine), '0', name)
tell({ machine = machine, name = name }, now, 'null', quoted(state), ARGV[9])
note_hops(machine, name, ARGV[11])
charge(account, bytes)
if ARGV[8] ~= '' then
  trace(machine, name, ARGV[10])
  ask(machine, name, ARGV[8])
end
return { 1 }
