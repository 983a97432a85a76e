/**
 * What this build is called: a hash of its files, which `scripts/finish-build.mjs` writes here. Results are kept under it,
 * so that another build never sees them; sources that run as they are have no name and keep nothing.
 */
export const BUILD: string = ''
