/**
 * Programs of the package as modules, for hosts without a file system: `scripts/finish-build.mjs` writes one import for each `.spt`
 * file, which bundlers and browsers load when it is first used. Sources that run without a build have none.
 */
export const PROGRAMS: Readonly<Record<string, () => Promise<{ readonly default: string }>>> = {}
