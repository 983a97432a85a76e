/**
 * A check that answers yes where it would refuse: what it prevents is then made. A test file turns checks off by
 * `vi.mock('../../src/ast/diagnostics/diagnostic.ts', async (original) => answering(await original()))`.
 */

/** The code of the check, none where empty, and how often it answered. */
export const yes = { code: '', asked: 0 }

export function answering<M extends typeof import('../../src/ast/diagnostics/diagnostic.ts')>(all: M): M {
  const unless =
    <A extends unknown[]>(fail: (...given: A) => never, codeOf: (...given: A) => string) =>
    (...given: A): void => {
      if (codeOf(...given) !== yes.code) fail(...given)
      yes.asked++
    }
  return {
    ...all,
    fail: unless(all.fail, (d) => d.code),
    failAs: unless(all.failAs, (code) => code),
    failAt: unless(all.failAt, (code) => code),
    failWith: unless(all.failWith, (code) => code),
  }
}

/** What `make` gives while the check answers yes, which it has to be asked for. */
export function answeringYes<T>(code: string, make: () => T): T {
  Object.assign(yes, { code: `schedule/${code}`, asked: 0 })
  try {
    return make()
  } finally {
    yes.code = ''
  }
}
