-- Included where the server's clock is needed: `us` is it then, in microseconds, as text. If it is brought, it is what
-- the client knows of it: for a server that does not let scripts read it, as the error tells the client.
if not us then
  local time = call('TIME')
  if time.err then return redis.error_reply('NOCLOCK ' .. time.err) end
  local rest = time[2]
  us = time[1] .. (#rest == 6 and rest or string.sub('00000' .. rest, -6))
end
