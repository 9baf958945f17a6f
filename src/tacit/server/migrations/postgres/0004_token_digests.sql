-- tokens are stored as SHA-256 digests now; those that were stored as slow hashes have to be made anew
UPDATE tokens SET is_revoked = 1 WHERE secret_hash LIKE '$argon2%';
