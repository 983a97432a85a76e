/**
 * Identifier of this build: a hash of its files, written by `scripts/finish-build.mjs`. It is part of cache keys, so builds do not
 * share results. Sources that run without a build have no identifier, and cache nothing.
 */
export const BUILD: string = ''
