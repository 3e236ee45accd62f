-- Gives locks at least this ttl, each if it holds its token; a longer one stays. For a node of a cluster: the locks may
-- be in any slots that are its own, which is why none is said to be a key. Needs Redis 7.
-- ARGV: ttl in ms, the locks, and the tokens in their order.
-- A letter for each lock. 1: it has the ttl, at least. 2: it has no expiry, and keeps none. 0: the token is not there.
-- ?: an error, such as that its slot is elsewhere, told to who asks alone.
local call, ttl, count, said = redis.pcall, ARGV[1], (#ARGV - 1) / 2, {}
for i = 2, count + 1 do
  local found = call('GET', ARGV[i])
  if type(found) == 'table' then
    said[i - 1] = '?'
  elseif found ~= ARGV[count + i] then
    said[i - 1] = '0'
  else
    local done = call('PEXPIRE', ARGV[i], ttl, 'GT')
    said[i - 1] = type(done) ~= 'number' and '?' or done == 0 and call('PTTL', ARGV[i]) == -1 and '2' or '1'
  end
end
return table.concat(said)
