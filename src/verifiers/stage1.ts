/** The invariants of Stage I. What elaboration gives and what every Stage I step must keep; never a user's fault. */

import { checkKinds } from '../analysis/iterator-kinds.ts'
import { InternalError, unreachable } from '../ast/diagnostic.ts'
import {
  type Axis,
  hasMask,
  hasMaskSize,
  isAttached,
  isFused,
  isStored,
  MAX_BITMAP,
  parentOf,
  sizesOfAxis,
} from '../ir/axis.ts'
import { type Dtype, isFloat } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import { walkExpr } from '../ir/expr-tree.ts'
import { isBuiltinReducer, type Monoid } from '../ir/monoid.ts'
import { isCompare } from '../ir/ops.ts'
import { printExpr1 } from '../ir/print-stage1.ts'
import type { Access, Buffer1, Iteration, Kernel1, Reduce1, Stmt1 } from '../ir/stage1.ts'

function check(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InternalError(`Stage I: ${message}`)
}

/** Names in sight with their types, and the axes that are open (a view opens its base). */
interface Scope {
  readonly types: ReadonlyMap<string, Dtype>
  readonly open: ReadonlySet<string>
}

/** Throws an `InternalError` that names the first invariant broken. */
export function verify1(kernel: Kernel1): void {
  const names = new Set<string>()
  const take = (name: string, what: string): void => {
    check(!names.has(name), `${what} ${name} has a name that is taken`)
    names.add(name)
  }
  for (const p of kernel.params) {
    take(p.name, 'parameter')
    check(p.kind === 'scalar' || p.dtype === 'i32', `size ${p.name} is ${p.dtype}`)
  }
  const axes = new Map<string, Axis>()
  const sizes = new Map(kernel.params.filter((p) => p.kind === 'size').map((p) => [p.name, p.dtype]))
  for (const a of kernel.axes) {
    take(a.name, 'axis')
    verifyAxis(a, axes, sizes, kernel)
    axes.set(a.name, a)
  }
  const buffers = new Map<string, Buffer1>()
  for (const b of kernel.buffers) {
    take(b.name, 'buffer')
    verifyBuffer(b, axes)
    buffers.set(b.name, b)
  }
  const scope: Scope = { types: new Map(kernel.params.map((p) => [p.name, p.dtype])), open: new Set() }
  new Verifier(axes, buffers, names).body(kernel.body, scope)
  for (const r of kernel.reformats) {
    for (const { instance: f } of r.instance.parts) {
      check(f.map.length === f.order.length, `${f.text} maps to ${f.map.length} of ${f.order.length} axes`)
      check(f.inverse.length === r.from.length, `${f.text} has ${f.inverse.length} inverses`)
    }
  }
  const [wrong] = checkKinds(kernel)
  check(!wrong, wrong ? `${wrong.code}: ${wrong.message}` : '')
}

function verifyAxis(
  a: Axis,
  axes: ReadonlyMap<string, Axis>,
  sizes: ReadonlyMap<string, Dtype>,
  kernel: Kernel1,
): void {
  const stored = (name: string): Axis => {
    const x = axes.get(name)
    check(x && isStored(x), `axis ${a.name} refers to ${name}, which is no stored axis before it`)
    return x
  }
  if (isStored(a)) {
    const parent = parentOf(a)
    if (parent !== null) stored(parent)
    check(
      !hasMask(a) || hasMaskSize(a),
      `the extent of the bitmap ${a.name} is no constant up to ${MAX_BITMAP}`,
    )
    for (const e of sizesOfAxis(a))
      walkExpr(e, (x) => {
        check(x.kind !== 'load' && x.kind !== 'search', `the extent of ${a.name} reads memory`)
        check(
          x.kind !== 'var' || sizes.has(x.name),
          `the extent of ${a.name} mentions ${printExpr1(x)}, which is no size`,
        )
        check(x.dtype === 'i32', `the extent of ${a.name} is ${x.dtype}`)
      })
    return
  }
  switch (a.kind) {
    case 'fused':
      check(a.members.length > 1, `fused axis ${a.name} has ${a.members.length} members`)
      a.members.forEach((m, k) => {
        check(
          parentOf(stored(m)) === (k === 0 ? null : a.members[k - 1]),
          `members of ${a.name} are no chain from a root`,
        )
      })
      break
    case 'attached': {
      const parent = parentOf(stored(a.base))
      check(
        parent !== null && parentOf(stored(parent)) === null,
        `${a.base} cannot be attached: its parent is no root`,
      )
      check(axes.has(a.parent), `axis ${a.name} refers to ${a.parent}, which is not before it`)
      break
    }
    case 'gathered':
      stored(a.base)
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
  const seen = new Set<string>()
  const parents = new Set<string>()
  for (const name of b.axes) {
    const a = axes.get(name)
    check(a && isStored(a), `buffer ${b.name} is over ${name}, which is no stored axis`)
    check(!seen.has(name), `buffer ${b.name} is over ${name} twice`)
    const parent = parentOf(a)
    check(parent === null || seen.has(parent), `buffer ${b.name} has ${name} before its parent`)
    check(parent === null || !parents.has(parent), `buffer ${b.name} has two children of ${parent}`)
    if (parent !== null) parents.add(parent)
    seen.add(name)
  }
  check(isFloat(b.dtype) || Number.isInteger(b.fill), `fill value ${b.fill} of ${b.name} is no ${b.dtype}`)
}

class Verifier {
  readonly #axes: ReadonlyMap<string, Axis>
  readonly #buffers: ReadonlyMap<string, Buffer1>
  readonly #declared: ReadonlySet<string>

  constructor(
    axes: ReadonlyMap<string, Axis>,
    buffers: ReadonlyMap<string, Buffer1>,
    declared: ReadonlySet<string>,
  ) {
    this.#axes = axes
    this.#buffers = buffers
    this.#declared = declared
  }

  body(list: readonly Stmt1[], outer: Scope): void {
    let scope = outer
    for (const s of list) {
      switch (s.kind) {
        case 'iterate':
          this.#iteration(s, scope)
          break
        case 'let':
          this.#expr(s.value, scope)
          check(!this.#declared.has(s.name) && !scope.types.has(s.name), `let ${s.name} hides something`)
          scope = { ...scope, types: new Map(scope.types).set(s.name, s.value.dtype) }
          break
        case 'if':
          this.#expr(s.cond, scope)
          check(s.cond.dtype === 'bool', `condition ${printExpr1(s.cond)} is ${s.cond.dtype}`)
          this.body(s.then, scope)
          this.body(s.else, scope)
          break
        case 'assign':
          this.#targets(s.targets, s.values, scope)
          s.values.forEach((v, k) => {
            const t = s.targets[k]!
            check(v.dtype === t.dtype, `${printExpr1(t)} is ${t.dtype} and is assigned ${v.dtype}`)
          })
          break
        case 'reduce':
          this.#targets(s.targets, s.values, scope)
          this.#reduce(s)
          break
        default:
          unreachable(s)
      }
    }
  }

  #iteration(s: Iteration, outer: Scope): void {
    const types = new Map(outer.types)
    const open = new Set(outer.open)
    for (const it of s.iters) {
      const a = this.#axes.get(it.axis)
      check(a, `iterator ${it.name} is over ${it.axis}, which is no axis`)
      const parent = isStored(a) ? parentOf(a) : isAttached(a) ? a.parent : null
      check(
        parent === null || open.has(parent),
        `${it.name} in ${s.name} is iterated outside its parent ${parent}`,
      )
      const brought = isFused(a) ? a.members : [it.name]
      for (const name of brought) {
        check(!types.has(name), `iterator ${name} of ${s.name} hides something`)
        check(
          name === it.axis || isFused(a) || views(a, name) || !this.#declared.has(name),
          `iterator ${name} hides something`,
        )
        types.set(name, 'i32')
      }
      for (const name of isFused(a) ? a.members : [it.axis]) open.add(name)
      if (isAttached(a)) open.add(a.base)
    }
    const scope = { types, open }
    for (const w of s.where) {
      this.#expr(w, scope)
      check(w.dtype === 'bool', `where ${printExpr1(w)} is ${w.dtype}`)
    }
    this.body(s.body, scope)
  }

  #targets(targets: readonly Access[], values: readonly Expr[], scope: Scope): void {
    check(
      targets.length === values.length && targets.length > 0,
      `${targets.length} targets, ${values.length} values`,
    )
    for (const t of targets) {
      this.#expr(t, scope)
      check(this.#buffers.get(t.buffer)!.role !== 'in', `the input ${t.buffer} is written`)
    }
    for (const v of values) this.#expr(v, scope)
  }

  #reduce(s: Reduce1): void {
    verifyMonoid(s.reducer)
    check(
      s.reducer.fields.length === s.targets.length,
      `${s.reducer.name} does not take ${s.targets.length} targets`,
    )
    const builtin = isBuiltinReducer(s.reducer.name)
    s.targets.forEach((t, k) => {
      const { dtype } = s.reducer.fields[k]!
      const value = s.values[k]!.dtype
      check(t.dtype === dtype, `${printExpr1(t)} is ${t.dtype} and is reduced as ${dtype}`)
      const wide = builtin ? this.#buffers.get(t.buffer)!.accumulate : dtype
      check(value === dtype || value === wide, `${printExpr1(t)} is reduced with ${value}`)
    })
  }

  #expr(e: Expr, scope: Scope): void {
    walkExpr(e, (x) => {
      switch (x.kind) {
        case 'var': {
          const dtype = scope.types.get(x.name)
          check(dtype, `${x.name} is not in sight`)
          check(dtype === x.dtype, `${x.name} is ${dtype} and used as ${x.dtype}`)
          break
        }
        case 'load': {
          const b = this.#buffers.get(x.buffer)
          check(b, `there is no buffer ${x.buffer}`)
          check(b.dtype === x.dtype, `${b.name} is ${b.dtype} and used as ${x.dtype}`)
          check(b.axes.length === x.index.length, `${printExpr1(x)} has ${x.index.length} indices`)
          for (const i of x.index) check(i.dtype === 'i32', `index ${printExpr1(i)} is ${i.dtype}`)
          break
        }
        default:
          verifyNode(x)
      }
    })
  }
}

/** What types alone say about a node. */
function verifyNode(x: Expr): void {
  switch (x.kind) {
    case 'builtin':
    case 'search':
      check(false, `${x.kind} in ${printExpr1(x)}`)
      break
    case 'binary': {
      check(x.a.dtype === x.b.dtype, `operands of ${printExpr1(x)} are ${x.a.dtype} and ${x.b.dtype}`)
      const logical = x.op === 'and' || x.op === 'or'
      check(!logical || x.a.dtype === 'bool', `operands of ${printExpr1(x)} are ${x.a.dtype}`)
      check(!(isCompare(x.op) || logical) || x.dtype === 'bool', `${printExpr1(x)} is ${x.dtype}`)
      check(x.op !== 'quo' && x.op !== 'rem', `${x.op} in ${printExpr1(x)}`)
      break
    }
    case 'select':
      check(x.cond.dtype === 'bool', `the condition of ${printExpr1(x)} is ${x.cond.dtype}`)
      check(
        x.then.dtype === x.dtype && x.else.dtype === x.dtype,
        `branches of ${printExpr1(x)} differ in type`,
      )
      break
    case 'unary':
      check((x.op === 'not') === (x.x.dtype === 'bool'), `the operand of ${printExpr1(x)} is ${x.x.dtype}`)
      break
    default:
  }
}

function verifyMonoid(m: Monoid): void {
  const n = m.fields.length
  const same = [m.identity, m.left, m.right, m.result].every((list) => list.length === n)
  check(same, `monoid ${m.name} does not have ${n} components everywhere`)
  const known = new Map([...m.left, ...m.right].map((v) => [v.name, v.dtype]))
  check(known.size === 2 * n, `the operands of monoid ${m.name} share names`)
  for (const e of [...m.identity, ...m.result])
    walkExpr(e, (x) => {
      check(x.kind !== 'var' || known.get(x.name) === x.dtype, `monoid ${m.name} mentions ${printExpr1(x)}`)
      check(x.kind !== 'load', `monoid ${m.name} reads memory`)
    })
}

/** An iterator over an attached axis may go by the name of the axis it enters. */
const views = (a: Axis, name: string): boolean => isAttached(a) && a.base === name
