/** Optional npm packages: peer dependencies of some devices and commands, installed by the user. */

/** Reason for the absence of a package or a driver, and the remedy. */
export interface Missing {
  readonly reason: string
  readonly hint: string
}

export const isMissing = <T extends object>(x: T | Missing): x is Missing => 'reason' in x

/** First line of an error. */
export const reasonOf = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).split('\n')[0]!

/**
 * Imports optional packages, or states how to install them.
 * @param purpose - Subject and verb of the message, such as `records need`
 * @param names - npm packages, separated by blanks
 */
export async function importOptional<T>(
  purpose: string,
  names: string,
  load: () => Promise<T>,
): Promise<T | Missing> {
  try {
    return await load()
  } catch (e) {
    const packages = names.split(' ')
    return {
      reason: `${purpose} the npm package${packages.length > 1 ? 's' : ''} ${packages.join(' and ')}, which cannot be loaded: ${reasonOf(e)}`,
      hint: `npm i ${names}`,
    }
  }
}
