/**
 * A check that answers yes where it would refuse: what it prevents is then made. A test file turns checks off by
 * `vi.mock('../../src/ast/diagnostics/diagnostic.ts', async (original) => answering(await original()))`.
 */
import type { Diagnostic } from '../../src/ast/diagnostics/diagnostic.ts'

/** The code of the check, none where empty, and how often it answered. */
export const yes = { code: '', asked: 0 }

export const answering = <M extends typeof import('../../src/ast/diagnostics/diagnostic.ts')>(all: M): M => ({
  ...all,
  fail: (d: Diagnostic): void => {
    if (d.code !== yes.code) all.fail(d)
    yes.asked++
  },
})

/** What `make` gives while the check answers yes, which it has to be asked for. */
export function answeringYes<T>(code: string, make: () => T): T {
  Object.assign(yes, { code: `schedule/${code}`, asked: 0 })
  try {
    return make()
  } finally {
    yes.code = ''
  }
}
