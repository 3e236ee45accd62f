-- Gives locks at least this ttl, each if it holds its token; a longer one stays. Needs Redis 7.
-- KEYS: locks. ARGV: ttl in ms, the tokens in the order of the keys.
-- A letter for each lock. 1: it has the ttl, at least. 2: it has no expiry, and keeps none. 0: the token is not there.
-- ?: an error, told to who asks alone.
local call, ttl = redis.pcall, ARGV[1]
local found = call('MGET', unpack(KEYS))
if found.err then return found end
for i = 1, #KEYS do
  if found[i] ~= ARGV[i + 1] then
    found[i] = '0'
  else
    local done = call('PEXPIRE', KEYS[i], ttl, 'GT')
    found[i] = type(done) ~= 'number' and '?' or done == 0 and call('PTTL', KEYS[i]) == -1 and '2' or '1'
  end
end
return table.concat(found)
