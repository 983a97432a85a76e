/** Updates by reducers as closures: values, and error bounds for any order of terms. */
import { failWith, invariant } from '../ast/diagnostics/diagnostic.ts'
import type { Reduce1 } from '../ir/coordinates/stage1.ts'
import type { Load } from '../ir/expressions/expr.ts'
import { computeType, type Dtype, isFloat, scalarType } from '../ir/values/dtype.ts'
import { isBuiltinReducer } from '../ir/values/monoid.ts'
import { arithmetic, wrap } from '../ir/values/numeric.ts'
import {
  type Bounds,
  binaryMonotoneError,
  errorAt,
  last,
  monotoneError,
  roundedError,
  UNDECIDED,
  undecide,
} from './error.ts'
import { compileBounded, compileExpr, undecidedIndex } from './evaluation/bounded.ts'
import type { Cell, Context, Scope, Thunk } from './tensors/cells.ts'
import { compileAddress, tensorOf } from './tensors/cells.ts'
import { spanOf } from './tensors/reference-buffers.ts'

// Targets of writes, as closures.

interface Target {
  readonly data: Float64Array
  readonly bounds: Bounds
  /**
   * The address of the element. Throws if it does not exist, unless `isIdentity` (a reducer's identity); −1 in that
   * case, and if the index is undecided.
   */
  readonly address: (isIdentity: boolean) => number
}

export function compileTarget(e: Load, scope: Scope, ctx: Context): Target {
  const t = tensorOf(ctx, e.buffer)
  const address = compileAddress(t, e, scope, (x) => compileExpr(x, scope, ctx))
  const coords = e.index.map((x) => compileExpr(x, scope, ctx))
  const isUndecided = undecidedIndex(e, scope, ctx)
  const { bounds } = t
  invariant(bounds, `${e.buffer} is written`)
  return {
    data: t.data,
    bounds,
    address: (isIdentity) => {
      if (isUndecided?.()) {
        undecide(bounds)
        return -1
      }
      const a = address()
      if (a >= 0 || isIdentity || ctx.undecidedDepth.v > 0) return a
      return failWith(
        'reference/absent-target',
        `${e.buffer}[${coords.map((c) => c()).join(', ')}] is written, but it is not stored`,
        {
          ...spanOf(e.span),
          hint: 'write only to coordinates that the buffer holds: iterate its own axes, or guard with `if`',
        },
      )
    },
  }
}

type Run = () => void

const EMPTY_SCOPE: Scope = { cells: new Map(), open: [] }

/** Sets an element to a single value with an error bound. */
export function setElement(b: Bounds, a: number, v: number, error: number): void {
  b.error[a] = error
  if (!b.sums) return
  b.sums.magnitude[a] = Math.abs(v)
  b.sums.terms[a] = 0
  b.sums.fractional[a] = Number.isInteger(v) ? 0 : 1
}

export function compileReduce(s: Reduce1, scope: Scope, ctx: Context): Run {
  const values = s.values.map((e) => compileBounded(e, scope, ctx))
  const targets = s.targets.map((t) => compileTarget(t, scope, ctx))
  const { accumulate } = ctx.tensors.get(s.targets[0]!.buffer)!.buffer
  const types = s.targets.map((t) => scalarType(t.dtype))
  const [value] = values
  const [target] = targets
  const { undecidedDepth } = ctx
  const identity = s.reducer.identity.map((e) => compileExpr(e, EMPTY_SCOPE, ctx)())
  if (!isBuiltinReducer(s.reducer.name)) return compileMonoid(s, identity, targets, values, types, ctx)
  invariant(value && target, 'an operator reduces into one element')
  const update = updateOf(s.reducer.name, types[0]!, accumulate, target)
  return () => {
    const v = value()
    const error = last.error
    const a = target.address(v === identity[0])
    if (a < 0) return
    if (undecidedDepth.v > 0) target.bounds.error[a] = UNDECIDED
    else update(a, v, error)
  }
}

type Update = (a: number, v: number, error: number) => void

function updateOf(reducer: string, t: Dtype, accumulate: Dtype, { data, bounds }: Target): Update {
  const { error, sums } = bounds
  if (reducer === 'and' || reducer === 'or') {
    const absorbing = reducer === 'and' ? 0 : 1
    return (a, v, e) => {
      const nonzero = data[a]! !== 0 ? 1 : 0
      const x = v !== 0 ? 1 : 0
      const isDecided = (error[a] === 0 && nonzero === absorbing) || (e === 0 && x === absorbing)
      error[a] = isDecided || (error[a] === 0 && e === 0) ? 0 : UNDECIDED
      data[a] = absorbing === 0 ? nonzero & x : nonzero | x
    }
  }
  if (reducer === '+' && sums) {
    const { magnitude, terms, fractional } = sums
    return (a, v, e) => {
      data[a]! += v
      error[a]! += e
      magnitude[a]! += Math.abs(v)
      terms[a]!++
      if (!Number.isInteger(v)) fractional[a] = 1
    }
  }
  const op = ({ '+': 'add', '*': 'mul', min: 'min', max: 'max' } as const)[reducer]!
  const f = arithmetic(op, isFloat(t) ? t : accumulate)
  return (a, v, e) => {
    const x = data[a]!
    const ex = error[a]!
    const y = f(x, v)
    data[a] = y
    if (ex === 0 && e === 0 && !(op === 'mul' && isFloat(t))) return
    if (op === 'min' || op === 'max') error[a] = binaryMonotoneError(f, x, ex, v, e, y)
    else if (op === 'mul' && isFloat(t))
      error[a] = roundedError(y, Math.abs(x) * e + Math.abs(v) * ex + ex * e, accumulate)
    else error[a] = UNDECIDED
    if (Number.isNaN(error[a])) error[a] = UNDECIDED
  }
}

function compileMonoid(
  { reducer: m, targets: loads }: Reduce1,
  identity: readonly number[],
  targets: readonly Target[],
  values: readonly Thunk[],
  types: readonly Dtype[],
  ctx: Context,
): Run {
  invariant(targets.length === m.fields.length, `monoid ${m.name} takes ${m.fields.length} components`)
  const left = m.left.map((): Cell => ({ v: 0, error: 0 }))
  const right = m.right.map((): Cell => ({ v: 0, error: 0 }))
  const cells = new Map<string, Cell>()
  m.left.forEach((v, k) => {
    cells.set(v.name, left[k]!)
  })
  m.right.forEach((v, k) => {
    cells.set(v.name, right[k]!)
  })
  const result = m.result.map((e) => compileBounded(e, { cells, open: [] }, ctx))
  const store = types.map(wrap)
  const errors = types.map(() => 0)
  const { onReduce } = ctx
  const { buffer } = loads[0]!
  return () => {
    values.forEach((v, k) => {
      right[k]!.v = v()
      right[k]!.error = last.error
    })
    const isIdentity = right.every((r, k) => r.v === identity[k])
    const addresses = targets.map((t) => t.address(isIdentity))
    if (addresses.some((a) => a < 0)) return
    if (ctx.undecidedDepth.v > 0) {
      targets.forEach((t, k) => {
        t.bounds.error[addresses[k]!] = UNDECIDED
      })
      return
    }
    onReduce?.(
      m,
      buffer,
      addresses[0]!,
      right.map((r) => r.v),
    )
    targets.forEach((t, k) => {
      left[k]!.v = t.data[addresses[k]!]!
      left[k]!.error = errorAt(t.bounds, addresses[k]!, types[k]!, computeType(types[k]!))
    })
    const next = result.map((r, k) => {
      const v = r()
      errors[k] = last.error
      return v
    })
    targets.forEach((t, k) => {
      const y = store[k]!(next[k]!)
      t.data[addresses[k]!] = y
      setElement(t.bounds, addresses[k]!, y, monotoneError(store[k]!, next[k]!, errors[k]!, y))
    })
  }
}
