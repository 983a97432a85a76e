/**
 * Names, indices and list expressions in a format's text that is expanded for one order: `d[k]`, `d...`, `order(d)`.
 */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { integer } from '../../ast/nodes/syntax-builders.ts'
import { mapSyntax } from '../../ast/nodes/walk.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { anotherMeaning, errorCount, report } from '../diagnostics.ts'
import { integerValue } from '../expressions/index-arithmetic.ts'

/** The maximum number of copies of a `for`, and of elements of a list: tensors have few dimensions. */
export const MAX_COPIES = 64

/** The code of errors that occur for tensors of every order. */
export const TOO_LONG = 'check/list-range'

/** The code of errors that may not occur for tensors of another order. */
export const BEYOND = 'check/list-index'

/** The elements of each list, by its name. */
type Lists = ReadonlyMap<string, readonly string[]>

export interface Here {
  readonly lists: Lists
  /** The values of names after `for`. */
  readonly numbers: ReadonlyMap<string, number>
  /** The list of dimensions; null for a format of fixed order. */
  readonly dims: string | null
  /** Names that a `for` must not have. */
  readonly taken: ReadonlySet<string>
}

export function withoutIndex(i: Ast.Ident): void {
  report('check/list-without-index', i.span, {
    message: `${i.name} is a list`,
    expected: `an element, ${i.name}[0], or the whole list, ${i.name}..., if several are allowed`,
  })
}

export function unknownList({ name, span }: Ast.Ident, here: Here): null {
  return report('check/unknown-list', span, {
    message: `there is no list ${name}`,
    lookup: { name, candidates: [...here.lists.keys()] },
  })
}

function element(e: Ast.Element, here: Here): Ast.Ident {
  const { name, index, span } = e
  if (index) return { name: indexed(e, index, here) ?? name, span }
  if (here.lists.has(name)) withoutIndex(e)
  return e
}

function indexed(list: Ast.Ident, index: Ast.Expr, here: Here): string | null {
  const elements = here.lists.get(list.name)
  if (!elements) return unknownList(list, here)
  const k = number(index, here)
  if (k === null) return null
  const found = elements[k]
  if (found !== undefined) return found
  const many = elements.length
  return report(BEYOND, index.span, {
    message: `there is no ${list.name}[${k}]: the list ${list.name} has ${quantity(many, 'element')} here`,
    expected: many === 0 ? 'no index' : many === 1 ? '0' : `0 to ${many - 1}`,
    ...(list.name === here.dims && k >= 0 && { hint: 'use this format for tensors of more dimensions' }),
  })
}

export function items(list: readonly Ast.Expr[], here: Here): Ast.Expr[] {
  return list.flatMap((e): Ast.Expr[] => {
    if (e.kind === 'spread') {
      const elements = here.lists.get(e.list.name)
      if (elements) return elements.map((name) => ({ kind: 'name', name, span: e.span }))
      unknownList(e.list, here)
      return []
    }
    if (e.kind !== 'repeat') return [expanded(e, here)]
    return rangeOf(e.each, here).map((numbers) => expanded(e.value, { ...here, numbers }))
  })
}

/** Fields with dimensions or axes, which may be elements of lists. */
const ELEMENTS: ReadonlySet<string> = new Set(['dim', 'dims', 'parent'])

/** A part of a format with names in place of elements of lists, and with numbers in place of names after `for`. */
export const expanded = <T>(part: T, here: Here): T =>
  mapSyntax(part, (node, key) =>
    ELEMENTS.has(key) ? element(node as Ast.Element, here) : replacement(node as Ast.Expr, here),
  )

function replacement(e: Ast.Expr, here: Here): Ast.Expr | undefined {
  switch (e.kind) {
    case 'name': {
      const value = here.numbers.get(e.name)
      if (value !== undefined) return integer(value, e.span)
      if (here.lists.has(e.name)) withoutIndex(e)
      return e
    }
    case 'access': {
      const [index, more] = e.index
      if (!here.lists.has(e.buffer.name) || !index || more) return undefined
      const name = indexed(e.buffer, index, here)
      return name === null ? e : { kind: 'name', name, span: e.span }
    }
    case 'call':
      if (e.fn.name === 'order') return orderOf(e, here)
      return { ...e, args: items(e.args, here), ...(e.by && { by: items(e.by, here) }) }
    case 'spread':
    case 'repeat':
      return e
    default:
      return undefined
  }
}

function orderOf(e: Ast.Call, here: Here): Ast.Expr {
  const [list, more] = e.args
  const elements = list?.kind === 'name' && !more && !e.by ? here.lists.get(list.name) : undefined
  if (elements) return integer(elements.length, e.span)
  report('check/unknown-list', e.span, {
    message: 'order is not written like this',
    expected: 'order(d), where d is a list of dimensions',
  })
  return e
}

/** The values of a `for`, each with the values of outer `for`s; an empty list after a reported error. */
export function rangeOf(each: Ast.For, here: Here): (typeof here.numbers)[] {
  const { name, from, to } = each
  if (here.taken.has(name.name) || here.numbers.has(name.name)) {
    anotherMeaning(name, 'this format', 'choose another name for the number')
    return []
  }
  const last = here.dims === null ? null : (here.lists.get(here.dims)?.length ?? 0) - 1
  const first = number(from, here)
  const end = to ? number(to, here) : last
  if (!to && last === null)
    report(TOO_LONG, each.span, {
      message: 'without a list of dimensions, there is no last dimension',
      expected: `an end: \`for ${name.name} from … to …\``,
    })
  if (first === null || end === null) return []
  if (end - first >= MAX_COPIES) {
    report(TOO_LONG, each.span, {
      message: `${first} to ${end} are ${end - first + 1} copies`,
      expected: `at most ${MAX_COPIES}`,
    })
    return []
  }
  return Array.from(
    { length: Math.max(0, end - first + 1) },
    (_, k) => new Map([...here.numbers, [name.name, first + k]]),
  )
}

/** The value of an index, which must follow from the order of the tensor. */
export function number(e: Ast.Expr, here: Here): number | null {
  const before = errorCount()
  const value = integerValue(expanded(e, here))
  if (errorCount() > before) return null
  if (value !== null && Number.isSafeInteger(value)) return value
  return report('check/list-number', e.span, {
    message: 'this number is not known with the order of the tensor alone',
    expected: `an integer from numbers, names after \`for\`${here.dims === null ? '' : ` and order(${here.dims})`}, with + - * / % min max`,
  })
}
