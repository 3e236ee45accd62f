-- Tells how long the lock will hold the token. KEYS: lock. ARGV: token.
-- Its ttl. 0: the token is not there, or about to go. -1: it has no expiry.
--@ include owned.lua
return redis.pcall('PTTL', KEYS[1])
