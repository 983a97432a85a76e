/** Elaboration of a kernel: AST → Stage I. */
import { accessesOf } from '../../analysis/dependence/coordinate-accesses.ts'
import { checkKinds } from '../../analysis/dependence/iterator-kinds.ts'
import type { Diagnostic } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Monoid } from '../../ir/values/monoid.ts'
import { errorCount, report, reportAll } from '../diagnostics.ts'
import { checkConstantExtents, checkPackings, declareAxes, declareParams, sizeNames } from './axes.ts'
import { checkGathered, declareBuffers } from './buffers.ts'
import { checkOwnedNames, nothingDeclared, Scope } from './kernel-names.ts'
import { elaborateIteration } from './statements.ts'

const isAxis = (m: Ast.Member): m is Ast.AxisDecl => m.kind === 'axis'
const isBuffer = (m: Ast.Member): m is Ast.BufferDecl => m.kind === 'buffer'
const isIterate = (m: Ast.Member): m is Ast.Iterate => m.kind === 'iterate'

export function elaborateKernel(
  name: string,
  k: Ast.Kernel,
  monoid: (name: Ast.Ident) => Monoid | null,
): Kernel1 | null {
  const before = errorCount()
  const d = nothingDeclared(monoid)
  declareParams(d, k.params)
  const sizes = new Set([...d.params.values()].filter((p) => p.kind === 'size').map((p) => p.name))
  const axes = k.members.filter(isAxis)
  declareAxes(d, axes, sizeNames(sizes, 'the sizes of the kernel'))
  checkConstantExtents(d)
  checkPackings(d)
  for (const { claims, name } of axes)
    for (const claim of claims)
      report('check/claim', claim.span, {
        message: `axis ${name.name} of a kernel cannot be ${claim.name}`,
        hint: 'formats claim properties of their axes',
      })
  declareBuffers(d, k.members.filter(isBuffer), k.members.filter(isIterate))
  checkGathered(d, axes)
  checkOwnedNames(d)
  const body = k.members
    .filter(isIterate)
    .map((s) => elaborateIteration(d, s, new Scope()))
    .filter((s): s is Iteration => s !== null)
  const kernel: Kernel1 = {
    stage: 1,
    name,
    params: [...d.params.values()],
    axes: [...d.axes.values()],
    buffers: [...d.buffers.values()],
    body,
    reformats: [],
    span: k.span,
  }
  reportAll(...checkKinds(kernel))
  // If statements are missing, errors about unwritten buffers would be unreliable.
  if (errorCount() === before) reportAll(...checkDataflow(kernel))
  return errorCount() === before ? kernel : null
}

// Definite assignment: outputs and temporaries must be written before they are read, in the order of the
// text.

function checkDataflow(kernel: Pick<Kernel1, 'axes' | 'buffers' | 'body'>): readonly Diagnostic[] {
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
