/** Definite assignment: outputs and temporaries must be written before they are read, in the order of the text. */

import { accessesOf } from '../../analysis/dependence/coordinate-accesses.ts'
import type { Diagnostic } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'

export function checkDataflow(kernel: Pick<Kernel1, 'axes' | 'buffers' | 'body'>): readonly Diagnostic[] {
  const out: Diagnostic[] = []
  const written = new Set<string>()
  const buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  for (const a of accessesOf(kernel.body, new Map(kernel.axes.map((x) => [x.name, x])))) {
    const b = buffers.get(a.buffer)
    if (a.mode !== 'read') written.add(a.buffer)
    else if (b && (b.role === 'out' || b.role === 'local') && !written.has(b.name))
      out.push({
        code: 'check/read-before-write',
        message: `${b.name} is read before the first write`,
        ...(a.span ? { span: a.span } : {}),
        ...(b.span
          ? { labels: [{ span: b.span, text: `${b.name} is ${b.role === 'out' ? 'an output' : 'a local'}` }] }
          : {}),
        hint:
          b.role === 'out'
            ? `use a reducer (\`+=\`), or give ${b.name} the role \`inout\``
            : `write ${b.name} in an earlier statement`,
      })
  }
  for (const b of kernel.buffers)
    if (b.role === 'out' && !written.has(b.name))
      out.push({
        code: 'check/never-written',
        message: `the output ${b.name} is never written`,
        ...(b.span ? { span: b.span } : {}),
        hint: `assign or reduce to ${b.name} in a statement, or remove the declaration`,
      })
  return out
}
