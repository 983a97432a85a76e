/** Memories and instructions: actions over the grammar's tree. */
import { typeName } from './checks.ts'
import * as ast from './nodes.ts'
import { INSTR_TEXTS } from './nodes-instr.ts'
import {
  type Actions,
  all,
  blockItem,
  get,
  item,
  list,
  maybe,
  slotsOf,
  spanOf,
  word,
} from './parse-context.ts'

export const instructions: Actions = {
  Memory(_, name, _colon, type, _open, shape, _close, _in, scope, threads, aligned, open, items, close) {
    const maps = all<ast.MemoryMap>(items)
    const node: ast.Memory = {
      kind: 'memory',
      name: get(name),
      type: typeName(get(type), ast.SCALAR_TYPES),
      shape: list(shape),
      scope: get(scope),
      threads: maybe(threads),
      aligned: maybe(aligned),
      maps,
      span: spanOf(this),
    }
    return blockItem(node, { open, close }, slotsOf(maps))
  },
  MemoryThreads: (_, count, _threads) => get(count),
  Aligned: (_, bytes) => get(bytes),
  MemoryItem: (node, _) => get(node),
  ElementMap(_, _open, lane, _comma, slot, _close, _arrow, _open2, to, _close2) {
    const names = { lane: get<ast.Ident>(lane), slot: get<ast.Ident>(slot) }
    return item<ast.ElementMap>({ kind: 'element', ...names, to: list(to), span: spanOf(this) })
  },
  AddressMap(_, from, _arrow, to) {
    return item<ast.AddressMap>({ kind: 'address', from: get(from), to: get(to), span: spanOf(this) })
  },
  Instr(_, name, _open, operands, _close, threads, words, open, items, close) {
    const body = all<ast.InstrItem>(items)
    const node: ast.Instr = {
      kind: 'instr',
      name: get(name),
      operands: list(operands),
      threads: maybe(threads),
      words: words.children.map(word),
      items: body,
      span: spanOf(this),
    }
    return blockItem(node, { open, close }, slotsOf(body))
  },
  InstrThreads: (_, count, _threads) => get(count),
  Mapped: (_, swizzle): ast.Mapped => ({ swizzle: maybe(swizzle) }),
  Swizzle: (_, bytes) => get(bytes),
  Operand(name, _colon, type, _open, shape, _close, _in, memory, aligned, mapped): ast.Operand {
    return {
      name: get(name),
      type: typeName(get(type), ast.SCALAR_TYPES),
      shape: list(shape),
      memory: get(memory),
      aligned: maybe(aligned),
      mapped: maybe(mapped),
      span: spanOf(this),
    }
  },
  InstrItem: (node, _) => get(node),
  InstrText(what, target, _from, version, code) {
    const kind = what.children[0]?.sourceString
    const from = version.children[0]?.sourceString
    const span = spanOf(code)
    return item<ast.InstrText>({
      kind: 'text',
      what: INSTR_TEXTS.find((w) => w === kind) ?? 'run',
      target: get(target),
      from: from === undefined ? null : Number(from),
      code: {
        name: code.sourceString.slice(1, -1),
        span: { ...span, start: span.start + 1, end: span.end - 1 },
      },
      span: spanOf(this),
    })
  },
}
