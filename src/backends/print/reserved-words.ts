/** Words that generated names must avoid: those of the target language, and those used by its spellings. */

import { unusedName } from '../../ir/expressions/bound-names.ts'
import { computeType, DTYPES } from '../../ir/values/dtype.ts'
import { MATH_FNS } from '../../ir/values/math.ts'
import type { BufferRef, Helpers, Spellings } from './spellings.ts'

/** Placeholder for names and operands, which is not a word. */
const BLANK = '0'

/**
 * Reserved words of a target: those of the language (`keywords`, separated by blanks: reserved words, types, names defined by
 * it or its headers), of the spelling table, of the helpers' source and of the module printer. Computed on first use, because
 * most processes print for one target or none.
 */
export function reservedWords(
  keywords: string,
  tables: readonly Spellings[],
  helpers: Readonly<Record<string, string>>,
  extra: readonly string[],
): () => ReadonlySet<string> {
  let words: ReadonlySet<string> | undefined
  return () => {
    if (words) return words
    const spellingWords = tables.flatMap((t) => wordsIn(spellings(t), WORD))
    const calledNames = wordsIn(Object.values(helpers), CALLED_NAME)
    words = new Set([
      ...keywords.split(/\s+/),
      ...spellingWords,
      ...Object.keys(helpers),
      ...calledNames,
      ...extra,
    ])
    return words
  }
}

/** Words in source text; field names after a point are not reserved. */
const WORD = /(?<![\w.])[A-Za-z_]\w*/g
/** Names that the source of helpers calls or indexes; their parameters are local. Single letters are template parameters. */
const CALLED_NAME = /(?<![\w.])[A-Za-z_]\w+(?=[([])/g

const wordsIn = (texts: readonly string[], word: RegExp): readonly string[] =>
  texts.flatMap((text) => text.match(word) ?? [])

/** All the texts that a spelling table produces for the element types. */
function spellings(t: Spellings): readonly string[] {
  const helpers: Helpers = new Map()
  const operands = { args: [BLANK, BLANK], x: BLANK, y: BLANK, helpers }
  return DTYPES.flatMap((dtype) => {
    const registerType = computeType(dtype)
    const ref: BufferRef = {
      name: BLANK,
      buffer: { name: BLANK, dtype, shape: [], scope: 'global', role: 'inout', fill: 0, accumulate: dtype },
      atomic: true,
      vector: false,
    }
    return [
      ...MATH_FNS.map((fn) => t.math[fn]({ ...operands, dtype: registerType })),
      ...DTYPES.map((from) => t.cast(BLANK, from, dtype, helpers)),
      ...(['min', 'max'] as const).map(
        (op) => t.binary(op, BLANK, BLANK, registerType, registerType, null, helpers) ?? '',
      ),
      ...t.atomicLoop(ref, BLANK, () => BLANK, helpers),
      ...['+', 'min', 'max'].map((op) => t.atomic(ref, BLANK, op, BLANK, helpers) ?? ''),
      t.type(registerType),
    ]
  })
}

/** Name mangling: names that are legal and unique in a target; keywords and names of generated code get a suffix. */
export class Mangler {
  readonly #map = new Map<string, string>()
  readonly #used: Set<string>

  constructor(reserved: ReadonlySet<string>) {
    this.#used = new Set(reserved)
  }

  name(original: string): string {
    const mangled = this.#map.get(original)
    if (mangled) return mangled
    const name = this.unique(original)
    this.#map.set(original, name)
    return name
  }

  /** Reserves a name for generated code; a kernel's variable of the same name is renamed. */
  unique(original: string): string {
    let base = original.replace(/[^A-Za-z0-9_]/g, '_')
    // WGSL rejects a leading `__` and a single `_`; all targets reject a leading digit.
    if (/^(_|[0-9])/.test(base)) base = `v${base}`
    const name = unusedName(base, (x) => this.#used.has(x), 1)
    this.#used.add(name)
    return name
  }
}
