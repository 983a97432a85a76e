/**
 * Invariants of Stage I, established by elaboration and preserved by every Stage I step. A violation is a bug of the
 * compiler.
 */
import { checkKinds } from '../analysis/dependence/iterator-kinds.ts'
import { unreachable } from '../ast/diagnostics/diagnostic.ts'
import type { Axis } from '../ir/coordinates/axis.ts'
import { isInvalidExtent, isStored, maxExtentOf, parentOf, sizesOfAxis } from '../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../ir/coordinates/stage1.ts'
import { walkExpr } from '../ir/expressions/expr-tree.ts'
import { printExpr1 } from '../ir/print/print-stage1.ts'
import { type ExprType, isFloat, isWord } from '../ir/values/dtype.ts'
import { check, type Scope, statementVerifier } from './stage1-statements.ts'

/** Throws `InternalError` naming the first violated invariant. */
export function verify1(kernel: Kernel1): void {
  const names = new Set<string>()
  const declare = (name: string, description: string): void => {
    check(!names.has(name), `${description} ${name} has a name that is taken`)
    names.add(name)
  }
  for (const p of kernel.params) {
    declare(p.name, 'parameter')
    check(p.kind === 'scalar' || p.dtype === 'i32', `size ${p.name} is ${p.dtype}`)
  }
  const axes = new Map<string, Axis>()
  const sizes = new Map(kernel.params.filter((p) => p.kind === 'size').map((p) => [p.name, 'index'] as const))
  for (const a of kernel.axes) {
    declare(a.name, 'axis')
    verifyAxis(a, axes, sizes, kernel)
    axes.set(a.name, a)
  }
  const buffers = new Map<string, Buffer1>()
  for (const b of kernel.buffers) {
    declare(b.name, 'buffer')
    verifyBuffer(b, axes)
    buffers.set(b.name, b)
  }
  const scope: Scope = {
    types: new Map(kernel.params.map((p) => [p.name, p.kind === 'size' ? 'index' : p.dtype])),
    open: new Set(),
  }
  statementVerifier(axes, buffers, names)(kernel.body, scope)
  for (const r of kernel.reformats) {
    for (const { instance: f } of r.instance.parts) {
      check(f.map.length === f.order.length, `${f.text} maps to ${f.map.length} of ${f.order.length} axes`)
      check(f.inverse.length === r.from.length, `${f.text} has ${f.inverse.length} inverses`)
    }
  }
  const [violation] = checkKinds(kernel)
  check(!violation, violation ? `${violation.code}: ${violation.message}` : '')
}

function verifyAxis(
  a: Axis,
  axes: ReadonlyMap<string, Axis>,
  sizes: ReadonlyMap<string, ExprType>,
  kernel: Kernel1,
): void {
  const findStored = (name: string): Axis => {
    const x = axes.get(name)
    check(x && isStored(x), `axis ${a.name} refers to ${name}, which is no stored axis before it`)
    return x
  }
  if (isStored(a)) {
    const parent = parentOf(a)
    if (parent !== null) findStored(parent)
    check(
      !isInvalidExtent(a),
      `the extent of the ${a.kind} ${a.name} is not a constant up to ${maxExtentOf(a)}`,
    )
    for (const e of sizesOfAxis(a))
      walkExpr(e, (x) => {
        check(x.kind !== 'load' && x.kind !== 'search', `the extent of ${a.name} reads memory`)
        check(
          x.kind !== 'var' || sizes.has(x.name),
          `the extent of ${a.name} mentions ${printExpr1(x)}, which is no size`,
        )
        check(isWord(x.dtype), `the extent of ${a.name} is ${x.dtype}`)
      })
    return
  }
  switch (a.kind) {
    case 'fused':
      check(a.members.length > 1, `fused axis ${a.name} has ${a.members.length} members`)
      a.members.forEach((m, k) => {
        check(
          parentOf(findStored(m)) === (k === 0 ? null : a.members[k - 1]),
          `members of ${a.name} are no chain from a root`,
        )
      })
      break
    case 'attached': {
      const parent = parentOf(findStored(a.base))
      check(
        parent !== null && parentOf(findStored(parent)) === null,
        `${a.base} cannot be attached: its parent is no root`,
      )
      check(axes.has(a.parent), `axis ${a.name} refers to ${a.parent}, which is not before it`)
      break
    }
    case 'gathered':
      findStored(a.base)
      check(
        kernel.buffers.some((b) => b.name === a.buffer),
        `axis ${a.name} refers to no buffer ${a.buffer}`,
      )
      break
    default:
      unreachable(a)
  }
}

function verifyBuffer(b: Buffer1, axes: ReadonlyMap<string, Axis>): void {
  const preceding = new Set<string>()
  const branched = new Set<string>()
  for (const name of b.axes) {
    const a = axes.get(name)
    check(a && isStored(a), `buffer ${b.name} is over ${name}, which is no stored axis`)
    check(!preceding.has(name), `buffer ${b.name} is over ${name} twice`)
    const parent = parentOf(a)
    check(parent === null || preceding.has(parent), `buffer ${b.name} has ${name} before its parent`)
    check(parent === null || !branched.has(parent), `buffer ${b.name} has two children of ${parent}`)
    if (parent !== null) branched.add(parent)
    preceding.add(name)
  }
  check(isFloat(b.dtype) || Number.isInteger(b.fill), `fill value ${b.fill} of ${b.name} is no ${b.dtype}`)
}
