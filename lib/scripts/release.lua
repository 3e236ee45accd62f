-- Deletes the lock if it holds the token. KEYS: lock. ARGV: token.
-- 1: deleted. 0: the token is not there.
--@ include owned.lua
return redis.pcall('DEL', KEYS[1])
