/** Rejects launches that exceed shared memory, both for an open device and for a compilation target. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Buffer, Launch } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'

/** Shared-memory arrays of a launch with their sizes in bytes. */
export function sharedArrays(
  { body }: Pick<Launch, 'body'>,
  elementBytes: (b: Buffer) => number,
): readonly { readonly name: string; readonly bytes: number }[] {
  const out: { readonly name: string; readonly bytes: number }[] = []
  walkStmts(body, (s) => {
    const length = s.kind === 'alloc' && s.buffer.scope === 'shared' ? s.buffer.shape[0] : undefined
    if (s.kind === 'alloc' && length?.kind === 'const')
      out.push({ name: s.buffer.name, bytes: length.value * elementBytes(s.buffer) })
  })
  return out
}

/** Checks a launch against a limit. `holder`: subject of the message, such as a device. @throws SptError `plan/shared-too-large` */
export function rejectSharedOverflow(
  name: string,
  total: number,
  arrays: ReturnType<typeof sharedArrays>,
  { limit, holder }: { readonly limit: number; readonly holder: string },
): void {
  if (total <= limit) return
  const arrayList = arrays.length > 0 ? ` (${arrays.map((b) => `${b.name} ${b.bytes}`).join(', ')})` : ''
  fail({
    code: 'plan/shared-too-large',
    message: `${name} needs ${total} bytes of shared memory${arrayList}; ${holder} ${limit} per block`,
    expected: `at most ${limit} bytes`,
    hint: 'cache a smaller tile: split the loops inside the cached loop by smaller factors, or pipeline by fewer stages',
  })
}
