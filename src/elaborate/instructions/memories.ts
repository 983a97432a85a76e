/** Elaboration of declared memories: AST → data. Their maps are checked for every element. */
import { SMALL_DIVIDENDS } from '../../analysis/integers/division-rules.ts'
import type { Extents } from '../../analysis/integers/linear.ts'
import { rangesOver } from '../../analysis/integers/ranges.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type Expr, int, rewriter, variable } from '../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { coordinateName, LANE, type Memory, SLOT, type TileText } from '../../ir/instructions/instr.ts'
import { coordinatesAt } from '../../ir/values/arrays.ts'
import { DTYPE_BYTES, type Dtype } from '../../ir/values/dtype.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { report } from '../diagnostics.ts'
import { converted, type Names, noNames } from '../expressions/expressions.ts'
import { integersOver, plain } from '../expressions/type-conversion.ts'
import type { Values } from './instances.ts'
import { type Base, object, registers } from './memory-registers.ts'
import { needsOf, targetNamed } from './target-requirements.ts'

/** The maximum number of elements of a tile, each of which is checked. */
const MOST = 1 << 16

export function elaborateMemory(m: Ast.Memory, values: Values): Memory | null {
  const dtype = m.type.name as Dtype
  const shape = m.shape.map((e) => constantOf(e, 'an extent'))
  const threads = threadsOf(m.threads)
  const align = m.aligned ? constantOf(m.aligned, 'an alignment') : DTYPE_BYTES[dtype]
  if (shape.some((n) => n === null) || threads === null || align === null) return null
  const extents = shape as number[]
  const total = extents.reduce((a, b) => a * b, 1)
  if (total > MOST)
    return report('check/memory-size', m.name.span, {
      message: `a tile of ${m.name.name} has ${total} elements`,
      expected: `at most ${MOST}`,
    })
  const scope = m.scope.name
  if (scope !== 'shared' && scope !== 'register')
    return report('check/memory-scope', m.scope.span, {
      message: `there is no memory ${scope}`,
      expected: 'shared or register',
      lookup: { name: scope, candidates: ['shared', 'register'] },
    })
  const base = { name: m.name.name, dtype, shape: extents, align, span: m.name.span }
  const items = m.items.filter((x) => x.kind !== 'limit' && x.kind !== 'examples')
  const texts = items.filter((x) => x.kind === 'text')
  const wanted = scope === 'shared' ? 'address' : texts.length > 0 ? 'text' : 'element'
  const other = items.find((x) => x.kind !== wanted)
  const item = items.find((x) => x.kind === wanted)
  if (!item || other || (m.threads && scope === 'shared') || (m.replicated && wanted !== 'element'))
    return report('check/memory-map', other?.span ?? m.name.span, {
      message: `a memory in ${scope} has ${scope === 'shared' ? 'addresses, and no threads' : 'elements of threads, or is an object of targets'}`,
      expected:
        scope === 'shared'
          ? '`address (i, j) -> …`'
          : '`of n threads { element (lane, slot) -> (…) }`, or the type on each target',
    })
  if (item.kind === 'address') return shared(item, { ...base, scope: 'shared', threads: 1 })
  const fragment = { ...base, scope: 'register', threads } as const
  if (item.kind === 'text') {
    const made = texts.flatMap((t) => {
      const text = tileText(t, values)
      return text ? [{ ...t, text }] : []
    })
    return made.length < texts.length ? null : object(m, fragment, made)
  }
  const element = elementOf(item, fragment)
  return element && registers(item, element, fragment, m.replicated)
}

function elementOf(map: Ast.ElementMap, { name, shape }: Base): readonly Expr[] | null {
  if (map.to.length !== shape.length)
    return report('check/memory-map', map.span, {
      message: `a tile of ${name} has ${shape.length} coordinates, not ${map.to.length}`,
      expected: `an expression for each dimension of [${shape.join(', ')}]`,
    })
  const names = new Map([
    [map.lane.name, LANE],
    [map.slot.name, SLOT],
  ])
  const element = map.to.map((e) => integerOver(e, names))
  return element.some((e) => e === null) ? null : (element as Expr[])
}

function tileText(t: Ast.MemoryText, values: Values): TileText | null {
  const target = targetNamed(t.target)
  if (!target) return null
  return {
    target,
    ...needsOf(t.needs, target, values),
    parts: filledText(t.code.name, values).split('$value'),
  }
}

/** The text with the values of parameters in place of `$n`. */
const filledText = (text: string, values: Values): string =>
  text.trim().replace(/\$([A-Za-z_]\w*)/g, (all, name: string) => String(values.get(name) ?? all))

function shared(map: Ast.AddressMap, base: Base): Memory | null {
  const { shape, name } = base
  if (map.from.length !== shape.length)
    return report('check/memory-map', map.span, {
      message: `a tile of ${name} has ${shape.length} coordinates, not ${map.from.length}`,
      expected: `a name for each dimension of [${shape.join(', ')}]`,
    })
  const names = new Map(map.from.map((n, k) => [n.name, coordinateName(k)]))
  const given = integerOver(map.to, names)
  if (!given) return null
  const address = reduced(given, new Map(shape.map((n, k) => [coordinateName(k), { extent: int(n) }])))
  const seen = new Map<number, readonly number[]>()
  let last = 0
  const total = shape.reduce((a, b) => a * b, 1)
  for (let flat = 0; flat < total; flat++) {
    const at = coordinatesAt(flat, shape)
    const place = evaluate(address, new Map(at.map((c, d) => [coordinateName(d), c])))
    const before = seen.get(place)
    if (place < 0 || place >= 4 * MOST || before !== undefined)
      return report(before === undefined ? 'check/memory-range' : 'check/memory-overlap', map.span, {
        message:
          before === undefined
            ? `the address of (${at.join(', ')}) of ${name} is ${place}`
            : `(${before.join(', ')}) and (${at.join(', ')}) of ${name} are both at ${place}`,
        expected: 'a distinct address for every element of the tile, from 0 on',
      })
    seen.set(place, at)
    last = Math.max(last, place)
  }
  const bytes = DTYPE_BYTES[base.dtype]
  // The size is rounded up so that the next tile is aligned as well.
  const size = Math.ceil(((last + 1) * bytes) / base.align) * (base.align / bytes)
  if (Number.isInteger(size)) return { ...base, size, element: [], address }
  return report('check/memory-align', map.span, {
    message: `${base.align} bytes are not a whole number of elements`,
    expected: `a multiple of ${bytes}, the bytes of an element`,
  })
}

/**
 * Removes remainders and quotients that are redundant for the extents of a tile. A text for several extents has such
 * operations.
 */
function reduced(address: Expr, extents: Extents): Expr {
  const range = rangesOver(extents)
  return rewriteExpr(address, (e) => withoutSmallDividends(e, range))
}

const withoutSmallDividends = rewriter(SMALL_DIVIDENDS)

/** The maximum number of threads of a block on any target; each thread is checked. */
const MOST_THREADS = 1024

/** The number of threads that act together, 1 by default. */
export function threadsOf(e: Ast.Expr | null): number | null {
  const threads = e ? constantOf(e, 'a number of threads') : 1
  if (!e || threads === null || threads <= MOST_THREADS) return threads
  return report('check/threads', e.span, {
    message: `no block has ${threads} threads`,
    expected: `at most ${MOST_THREADS}`,
  })
}

export function constantOf(e: Ast.Expr, what: string): number | null {
  const value = integerOver(e, new Map())
  if (!value) return null
  if (value.kind === 'const' && value.value >= 1) return value.value
  return report('check/constant', e.span, {
    message: `${what} of a memory or an instruction is a positive constant`,
    expected: 'a whole number from 1 on',
  })
}

/**
 * An integer expression over the given names, which are replaced by variables. `constants` have been substituted
 * before, and are named in messages only.
 */
export function integerOver(
  e: Ast.Expr,
  names: ReadonlyMap<string, string>,
  constants: Iterable<string> = [],
): Expr | null {
  const known = [...names.keys(), ...constants]
  const refuse = (x: Ast.Expr): null =>
    report('check/unknown-name', x.span, {
      message: known.length > 0 ? `only ${known.join(', ')} can be used here` : 'this is not a constant',
      expected: integersOver(known),
    })
  const scope: Names = {
    ...noNames(refuse),
    name: (x) => {
      const to = names.get(x.name)
      return to === undefined ? refuse(x) : plain(variable(to, 'index', x.span))
    },
  }
  return converted(e, scope, 'index', 'this')
}

export function precisionOf(s: Ast.Instr): number | undefined {
  const [first, second] = s.items.filter((x) => x.kind === 'precision')
  const bits = first && constantOf(first.bits, 'a precision')
  if (second)
    report('check/duplicate', second.span, {
      message: `instruction ${s.name.name} has two precisions`,
      hint: 'delete a precision',
    })
  else if (first && bits !== null && !(bits! >= 1 && bits! <= 23))
    report('check/instr-precision', first.span, {
      message: `instruction ${s.name.name} has a precision of ${bits} bits`,
      expected: 'the bits of the fraction of a factor, from 1 to 23',
    })
  return bits ?? undefined
}
