/** Elaboration of a kernel: AST → Stage I. */

import { accessesOf } from '../../analysis/dependence/coordinate-accesses.ts'
import { checkKinds } from '../../analysis/dependence/iterator-kinds.ts'
import type { Diagnostic, Problem, Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { literalValue } from '../../ast/nodes/nodes.ts'
import { chainTo, isDenseRoot, isStored, parentOf } from '../../ir/coordinates/axis.ts'
import type { Kernel1, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { constant } from '../../ir/expressions/expr.ts'
import { computeType, DTYPE_BYTES, type Dtype, isFloat, isInt } from '../../ir/values/dtype.ts'
import type { Monoid } from '../../ir/values/monoid.ts'
import { builtinMonoid, isBuiltinReducer, isSelection } from '../../ir/values/monoid.ts'
import { errorCount, report, reportAll } from '../diagnostics.ts'
import { coerce } from '../expressions/type-conversion.ts'
import { checkConstants, declareAxes, declareParams, sizeNames } from './axes.ts'
import {
  checkOwnedNames,
  type Declared,
  declare,
  nothingDeclared,
  Scope,
  unknownAxis,
  unknownBuffer,
} from './kernel-names.ts'
import { checkRounds, edgeOf, isFilledBefore, withCarried } from './rounds-edges.ts'
import { elaborateIteration } from './statements.ts'

const isAxis = (m: Ast.Member): m is Ast.AxisDecl => m.kind === 'axis'
const isBuffer = (m: Ast.Member): m is Ast.BufferDecl => m.kind === 'buffer'
const isEdge = (m: Ast.Member): m is Ast.RoundsEdge => m.kind === 'rounds_edge'
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
  checkConstants(d)
  for (const { claims, name } of axes)
    for (const claim of claims)
      report('check/claim', claim.span, {
        message: `axis ${name.name} of a kernel cannot be ${claim.name}`,
        hint: 'formats claim properties of their axes',
      })
  declareBuffers(d, k.members.filter(isBuffer), k.members.filter(isIterate))
  checkGathered(d, axes)
  checkOwnedNames(d)
  const statements = k.members.flatMap((m): readonly Stmt1[] => {
    const s = isIterate(m) ? elaborateIteration(d, m, new Scope()) : isEdge(m) ? edgeOf(d, m) : null
    return s ? [s] : []
  })
  const body = withCarried(statements, k.members.filter(isEdge))
  const kernel: Kernel1 = {
    stage: 1,
    name,
    params: [...d.params.values()],
    axes: [...d.axes.values()],
    buffers: [...d.buffers.values()],
    body,
    reformats: [],
    ...(k.calls && { calls: k.calls }),
    span: k.span,
  }
  reportAll(...checkKinds(kernel), ...checkRounds(kernel))
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
    else if (
      b &&
      (b.role === 'out' || b.role === 'local') &&
      !written.has(b.name) &&
      !isFilledBefore(kernel.body, b.name)
    )
      out.push({
        code: 'check/read-before-write',
        message: `${b.name} is read before the first write`,
        ...(a.span && { span: a.span }),
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
        ...(b.span && { span: b.span }),
        hint: `assign or reduce to ${b.name} in a statement, or remove the declaration`,
      })
  return out
}

// Buffers: their axes, types and roles.

/**
 * Declares buffers. `body` has the kernel's iterations, whose reductions decide the types in which buffers accumulate.
 */
function declareBuffers(d: Declared, decls: readonly Ast.BufferDecl[], body: readonly Ast.Stmt[]): void {
  const summed = summedIn(d, body)
  for (const b of decls) {
    const name = b.name.name
    if (!declare(d, b.name, 'buffer')) continue
    const axes = axesOf(d, b)
    const fill = fillOf(b)
    const accumulate = accumulateOf(b, summed.has(name))
    if (axes === null || fill === null || accumulate === null) {
      d.broken.add(name)
      continue
    }
    d.buffers.set(name, {
      name,
      dtype: b.type.name as Dtype,
      axes,
      role: b.role.name,
      fill,
      accumulate,
      span: b.span,
    })
  }
}

function axesOf(d: Declared, b: Ast.BufferDecl): readonly string[] | null {
  const seen: string[] = []
  let ok = true
  const error = (code: string, span: Span, problem: Problem): void => {
    ok = false
    report(code, span, problem)
  }
  for (const id of b.axes) {
    const a = d.axes.get(id.name)
    if (!a) {
      ok = false
      if (!d.broken.has(id.name)) unknownAxis(d, id)
      continue
    }
    const labels = a.span ? [{ span: a.span, text: `${a.name} is declared here` }] : []
    if (!isStored(a))
      error('check/view', id.span, {
        message: `buffer ${b.name.name} cannot be over ${a.name}, which is ${a.kind}: a view that stores nothing`,
        labels,
        expected: 'dense and sparse axes',
      })
    else if (seen.includes(a.name))
      error('check/axis-twice', id.span, {
        message: `buffer ${b.name.name} has the axis ${a.name} twice`,
        labels,
        hint: 'declare a second axis with the same extent',
      })
    else {
      const parent = parentOf(a)
      if (parent !== null && !seen.includes(parent))
        error('check/axis-order', id.span, {
          message: `axis ${a.name} of buffer ${b.name.name} comes before the parent ${parent}`,
          labels,
          hint: `${b.name.name}: ${b.type.name}[${chainTo(d.axes, a.name).join(', ')}], or an own axis of the same size, such as \`axis ${a.name}d = dense_fixed(n)\`, for a dense tensor`,
        })
      const sibling = parent === null ? undefined : seen.find((s) => parentOf(d.axes.get(s)!) === parent)
      if (sibling)
        error('check/axis-branch', id.span, {
          message: `axes ${sibling} and ${a.name} of buffer ${b.name.name} are both children of ${parent}`,
          labels,
          expected: 'at most one child of each axis',
        })
      seen.push(a.name)
    }
  }
  return ok ? seen : null
}

function fillOf(b: Ast.BufferDecl): number | null {
  if (!b.fill) return 0
  const value = literalValue(b.fill)
  const dtype = b.type.name as Dtype
  if (typeof value === 'boolean' || value === undefined) {
    if (typeof value === 'boolean' && dtype === 'bool') return value ? 1 : 0
    return report('check/literal-type', b.fill.span, {
      message: `the fill value of ${b.name.name} is not ${dtype}`,
      expected: `a literal of type ${dtype}`,
    })
  }
  const float = !Number.isInteger(value) || isFloatLiteral(b.fill)
  const expr = constant(value, float ? 'f64' : 'i32')
  const literal = float ? 'float' : 'int'
  const e = coerce({ expr, literal, span: b.fill.span }, dtype, `the fill value of ${b.name.name}`)
  return e?.kind === 'const' ? e.value : null
}

const isFloatLiteral = (e: Ast.Expr): boolean =>
  e.kind === 'number' ? e.float : e.kind === 'unary' && isFloatLiteral(e.x)

/**
 * The buffers for which reducers compute new values. Reducers that select a value, such as `max`, are exact in any type
 * and do not count.
 */
function summedIn(d: Declared, body: readonly Ast.Stmt[], out = new Set<string>()): ReadonlySet<string> {
  for (const s of body) {
    if (s.kind === 'reduce') {
      const { name } = s.reducer
      const monoid = isBuiltinReducer(name) ? builtinMonoid(name, 'f32') : d.monoid(s.reducer)
      for (const [k, t] of s.targets.entries())
        if (monoid?.result[k] && !isSelection(monoid, k)) out.add(t.buffer.name)
    }
    if (s.kind === 'iterate') summedIn(d, s.body, out)
    if (s.kind === 'if') summedIn(d, [...s.then, ...s.else], out)
  }
  return out
}

/**
 * The type in which a buffer accumulates. The type may be wider than the storage type, but is of the same kind. By
 * default, sums into types narrower than 32 bits accumulate in the type of their arithmetic, so that no schedule
 * decides how often a sum is rounded.
 */
function accumulateOf(b: Ast.BufferDecl, summed: boolean): Dtype | null {
  const dtype = b.type.name as Dtype
  const wide = (b.accumulate?.name as Dtype | undefined) ?? (summed ? computeType(dtype) : dtype)
  const kind = (isFloat(dtype) && isFloat(wide)) || (isInt(dtype) && isInt(wide))
  if (wide === dtype || (kind && DTYPE_BYTES[wide] > DTYPE_BYTES[dtype])) return wide
  return report('check/accumulate', b.accumulate?.span ?? b.span, {
    message: `${b.name.name} is ${dtype} and cannot accumulate in ${wide}`,
    expected: `a wider ${isFloat(dtype) ? 'floating-point' : 'integer'} type`,
  })
}

/** Reports invalid lists of gathered axes: a list must be an i32 input over one dense axis. */
function checkGathered(d: Declared, decls: readonly Ast.AxisDecl[]): void {
  for (const { def, name } of decls) {
    if (def.kind !== 'gathered' || d.broken.has(def.buffer.name)) continue
    const list = d.buffers.get(def.buffer.name)
    if (!list) {
      d.broken.add(name.name)
      unknownBuffer(def.buffer, d.buffers)
      continue
    }
    const axis = list.axes.length === 1 ? d.axes.get(list.axes[0]!) : undefined
    if (list.dtype !== 'i32' || list.role !== 'in' || !axis || !isDenseRoot(axis))
      report('check/gathered-list', def.buffer.span, {
        message: `${list.name} cannot list the coordinates of ${def.base.name}`,
        ...(list.span && { labels: [{ span: list.span, text: 'declared here' }] }),
        expected: 'an i32 buffer of role `in` over one dense_fixed root',
      })
  }
}
