/** Dispatch tables that was found for another version of their kernel. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { Diagnostic } from '../../ast/diagnostics/diagnostic.ts'
import { kernelWord } from '../../ir/coordinates/derived-names.ts'
import { kernelHash } from '../records/identity.ts'

/** A warning for each dispatch of a kernel whose table was found before the kernel changed. */
export function staleChoices(kernel: Kernel): readonly Diagnostic[] {
  const now = kernelHash(kernel)
  return [...kernel.declaredDispatches.values()].flatMap(({ name, table }): Diagnostic[] => {
    // The identity of a kernel with type parameters is unknown: the table serves all types.
    if (!table?.kernelHash || table.kernelHash.name === now || table.kernel.name !== kernel.name) return []
    return [
      {
        code: 'table/stale',
        severity: 'warning',
        message: `the dispatch table of ${kernel.name}.${name} was found for another version of the kernel`,
        span: table.kernelHash.span,
        hint: `search again: spt tune FILE --kernel ${kernelWord(kernel.name)} --bind … --generalise ${table.path}; if the kernel computes the same as before: "kernelHash": "${now}"`,
      },
    ]
  })
}
