/**
 * Random programs as text, with inputs. Most are legal; the checker refuses the rest. Every value is an integer
 * that its type holds exactly, so that results have to be equal to the last bit.
 */

import { type Dtype, isFloat, isHalf } from '../../src/ir/values/dtype.ts'
import type { RefInputs, RefTensor } from '../../src/reference/index.ts'
import { encoder, newValues, type Tensor } from '../../src/storage/tensor.ts'
import type { Choices } from './choices.ts'
import { type Entries, entries, size, values } from './matrix-gen.ts'
import { FORMATS, KEYWORDS, MONOIDS } from './program-parts.ts'

export interface Sample {
  readonly text: string
  readonly params: Readonly<Record<string, number>>
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly reference: RefInputs
  /** What occurs: axis kinds, types, statements. */
  readonly uses: ReadonlySet<string>
  /** Tensors to store in formats; left out: those that are sparse. */
  readonly stored?: readonly string[]
}

/** `b`: a constant, the extent of bitmaps. */
type Size = 'm' | 'n' | 'p' | 'd' | 'b'

/** A coordinate in scope: a name and the size that bounds it. */
interface Coordinate {
  readonly name: string
  readonly size: Size
  /** The stored axis it is of, where a buffer over that axis can be indexed by it. */
  readonly axis: string
  readonly kind: 'S' | 'R'
}

interface Input {
  readonly name: string
  readonly dtype: Dtype
  readonly sizes: readonly Size[]
  /** Axes of a tree: readable at open coordinates. */
  readonly axes: readonly string[]
}

/** As many as the extents of bitmaps. */
const WIDEST = 40

const VALUE_TYPES: readonly Dtype[] = ['f32', 'i32', 'f64', 'u32', 'f16', 'bf16', 'i8', 'u8', 'bool']

export const generate = (c: Choices): Sample => new Generator(c).run()

class Generator {
  readonly #c: Choices
  readonly #names = new Set<string>()
  readonly #sizes: Record<Size, number>
  readonly #size: Record<Size, string>
  readonly #type: Dtype
  /** Values and expressions stay tiny: products and 16-bit sums. */
  readonly #narrow: boolean
  readonly #reducer: string
  readonly #uses = new Set<string>()
  readonly #params: Record<string, number> = {}
  readonly #tensors: Record<string, Tensor> = {}
  readonly #buffers: Record<string, RefTensor> = {}
  readonly #structure: Record<string, { coords: readonly (readonly number[])[] }> = {}
  readonly #axes: string[] = []
  readonly #decls: string[] = []
  readonly #inputs: Input[] = []
  readonly #scalars: { name: string; dtype: Dtype }[] = []
  readonly #dense = new Map<string, string>()

  constructor(c: Choices) {
    this.#c = c
    this.#type = c.chance(45) ? c.pick(VALUE_TYPES) : c.pick(['f32', 'i32'])
    this.#uses.add(this.#type)
    const bool = this.#type === 'bool'
    this.#reducer = bool
      ? c.pick(['or', 'and'])
      : c.pick(isHalf(this.#type) ? ['+', 'max', 'min'] : ['+', '+', 'max', 'min', '*', 'pair'])
    if (this.#reducer === 'pair' && this.#type !== 'f32' && this.#type !== 'i32') this.#reducer = '+'
    this.#narrow =
      (isHalf(this.#type) && this.#reducer !== '+') || (this.#reducer === '*' && isFloat(this.#type))
    const b = c.pick([5, 33, 7, 1, 40])
    this.#sizes = { m: size(c), n: size(c), p: size(c), d: size(c), b }
    this.#size = {
      m: this.#name('m'),
      n: this.#name('n'),
      p: this.#name('p'),
      d: this.#name('d'),
      b: `${b}`,
    }
    for (const s of ['m', 'n', 'p', 'd'] as const) this.#params[this.#size[s]] = this.#sizes[s]
  }

  run(): Sample {
    const c = this.#c
    const main = this.#tree('', c.pick([2, 2, 2, 3, 1]), 'm')
    this.#sparseInput('A', main)
    const second = c.chance(40) ? this.#tree('b', 2, main.at(-1)!.size) : undefined
    if (second) this.#sparseInput('B', second)
    const opened = this.#open(main, second)
    const vectors = 1 + c.below(2)
    for (let k = 0; k < vectors; k++)
      this.#denseInput(`x${k}`, [opened.length > 0 ? c.pick(opened).size : 'n'])
    if (c.chance(60)) this.#denseInput('W', [c.pick(opened).size, c.pick(opened).size])
    if (c.chance(35)) this.#denseInput('P', [c.pick(opened).size], 'i32')
    if (c.chance(30)) this.#scalar()
    const body = [...this.#body(opened), ...(c.chance(12) ? this.#spare(c.pick(opened).size) : [])]
    const kernel = this.#name('k')
    const params = [
      ...(['m', 'n', 'p', 'd'] as const).map((s) => `${this.#size[s]}: size`),
      ...(this.#params[this.#list] === undefined ? [] : [`${this.#list}: size`]),
      ...this.#scalars.map((s) => `${s.name}: ${s.dtype}`),
    ]
    const text = `${FORMATS}${this.#reducer === 'pair' ? MONOIDS[this.#type as 'f32' | 'i32'] : ''}
kernel ${kernel}(${params.join(', ')}) {
${[...this.#axes, ...this.#decls].map((l) => `  ${l}`).join('\n')}
${body.map((l) => `  ${l}`).join('\n')}
}
`
    return {
      text,
      params: this.#params,
      tensors: this.#tensors,
      reference: { params: this.#params, buffers: this.#buffers, structure: this.#structure },
      uses: this.#uses,
    }
  }

  #list = ''

  /** `base`, or a word that some target reserves. */
  #name(base: string): string {
    let name = base
    if (this.#c.chance(4)) {
      name = this.#c.pick(KEYWORDS)
      this.#uses.add('keyword')
    }
    for (let k = 2; this.#names.has(name); k++) name = `${base}${k}`
    this.#names.add(name)
    return name
  }

  // --- structure ---

  /** A chain of axes from a root over `first`. */
  #tree(prefix: string, depth: number, first: Size): Coordinate[] {
    const c = this.#c
    const sizes: Size[] = [first, c.pick(['n', 'm', 'p']), c.pick(['p', 'n'])].slice(0, depth) as Size[]
    const out: Coordinate[] = []
    let apart = false
    sizes.forEach((drawn, level) => {
      const name = this.#name(`${prefix}${'ijk'[level]}`)
      const parent = out.at(-1)?.axis
      const drawnKind: string =
        parent === undefined
          ? c.chance(25) || depth === 1
            ? 'sparse root'
            : 'dense_fixed'
          : c.pick([
              'sparse_variable',
              'sparse_variable',
              'sparse_variable',
              'sparse_fixed',
              'dense_variable',
              'run',
              'singleton',
              'dense child',
              'bitmap',
            ])
      // A parent with indices has a position for each element; others have room for one.
      const listed = this.#axes.at(-1)?.includes('= sparse_variable(') && !apart
      const kind = drawnKind === 'singleton' && !listed ? 'sparse_variable' : drawnKind
      const s = kind === 'bitmap' ? 'b' : drawn
      const size = this.#size[s]
      const under = apart
      apart = false
      const flags = (): string => {
        const unordered = c.chance(12)
        apart = c.chance(12)
        if (unordered) this.#uses.add('unordered')
        if (apart) this.#uses.add('nonunique')
        return `${unordered ? ' unordered' : ''}${apart ? ' nonunique' : ''}`
      }
      // Positions of a nonunique parent take as many coordinates each as fit.
      // Entries under a nonunique axis, such as those of a row of a bitmap, have a position each.
      const width = (): number => (under ? c.pick([2, 1, 3]) : apart ? WIDEST : 16)
      if (kind === 'sparse_fixed' && under) this.#uses.add('pieces')
      // Sizes are small.
      const packed = (): string => {
        if (!c.chance(15)) return ''
        this.#uses.add('packed')
        return c.pick([' packed 8', ' packed 16'])
      }
      const decl = ((): string => {
        switch (kind) {
          case 'sparse root':
            return `sparse_variable(${size})${flags()}${packed()}`
          case 'dense_fixed':
            return `dense_fixed(${size})`
          case 'dense child':
            return `dense_fixed(${parent}, ${size})`
          case 'sparse_fixed': {
            const own = flags()
            return `sparse_fixed(${parent}, ${size}, ${width()})${own}${packed()}`
          }
          default:
            return `${kind}(${parent}, ${size})${kind === 'sparse_variable' ? `${flags()}${packed()}` : ''}`
        }
      })()
      this.#uses.add(kind)
      this.#uses.add(`depth ${level + 1}`)
      this.#axes.push(`axis ${name} = ${decl}`)
      out.push({ name, size: s, axis: name, kind: 'S' })
    })
    return out
  }

  /** A dense axis of this size; `again` tells several of one size apart. */
  #denseAxis(size: Size, again = 0): string {
    const key = `${size}${again}`
    let name = this.#dense.get(key)
    if (name === undefined) {
      name = this.#name(`q${key}`)
      this.#dense.set(key, name)
      this.#axes.push(`axis ${name} = dense_fixed(${this.#size[size]})`)
    }
    return name
  }

  // --- inputs ---

  #fill(): number {
    return this.#c.chance(15) && this.#type !== 'bool' ? 1 : 0
  }

  #inputType(): Dtype {
    if (this.#type === 'bool') return 'bool'
    return this.#c.chance(15) && !this.#narrow ? this.#c.pick(VALUE_TYPES) : this.#type
  }

  #sparseInput(base: string, tree: readonly Coordinate[]): void {
    const c = this.#c
    const name = this.#name(base)
    const dtype = this.#inputType()
    const shape = tree.map((t) => this.#sizes[t.size])
    const text = this.#axes.join('\n')
    const adds = (dtype === 'f32' || dtype === 'i32' || dtype === 'f64') && !text.includes('nonunique')
    const e = entries(c, shape, adds && c.chance(20))
    const numbers = values(c, dtype, e.count, this.#narrow)
    const fill = this.#fill()
    this.#uses.add(dtype)
    this.#decls.push(
      `buffer ${name}: ${dtype}[${tree.map((t) => t.axis).join(', ')}] in${fill === 0 ? '' : ` fill ${fill}`}`,
    )
    this.#bind(name, dtype, shape, e, numbers)
    this.#inputs.push({ name, dtype, sizes: tree.map((t) => t.size), axes: tree.map((t) => t.axis) })
    if (text.includes('nonunique'))
      this.#buffers[name] = { ...this.#buffers[name]!, duplicates: 'keep' } as RefTensor
  }

  #bind(name: string, dtype: Dtype, shape: readonly number[], e: Entries, numbers: readonly number[]): void {
    this.#tensors[name] = {
      kind: 'coords',
      shape,
      coords: e.coords.map((col) => Int32Array.from(col)),
      values: encoded(dtype, numbers),
      dtype,
    }
    this.#buffers[name] = { coords: e.coords, values: numbers }
  }

  #denseInput(base: string, sizes: readonly Size[], type?: Dtype): void {
    const name = this.#name(base)
    const dtype = type ?? this.#inputType()
    const shape = sizes.map((s) => this.#sizes[s])
    const count = shape.reduce((a, b) => a * b, 1)
    const numbers = values(this.#c, dtype, count, this.#narrow && type === undefined)
    const fill = this.#fill()
    const axes = sizes.map((s, k) => this.#denseAxis(s, sizes.slice(0, k).filter((x) => x === s).length))
    this.#uses.add(dtype)
    this.#decls.push(`buffer ${name}: ${dtype}[${axes.join(', ')}] in${fill === 0 ? '' : ` fill ${fill}`}`)
    this.#tensors[name] = { kind: 'dense', shape, values: encoded(dtype, numbers), dtype }
    this.#buffers[name] = numbers
    this.#inputs.push({ name, dtype, sizes, axes })
  }

  #scalar(): void {
    const dtype =
      this.#type === 'bool' || isHalf(this.#type) ? this.#type : this.#c.pick([this.#type, 'i32' as const])
    const name = this.#name('alpha')
    this.#params[name] = dtype === 'bool' ? 1 : this.#narrow ? 1 : 2
    this.#scalars.push({ name, dtype })
    this.#uses.add('scalar')
  }

  // --- iteration ---

  /** What the first iteration opens, outermost first. */
  #open(main: readonly Coordinate[], second: readonly Coordinate[] | undefined): Coordinate[] {
    const c = this.#c
    let out: Coordinate[] = [...main]
    const how = c.pick([
      'chain',
      'chain',
      'chain',
      'fused',
      'attached',
      'gathered',
      'prefix',
      'join',
    ] as const)
    this.#head = out.map((x) => x.name)
    if (how === 'fused' && main.length > 1) {
      const axis = this.#name('fu')
      const members = main.slice(0, c.pick([main.length, 2]))
      this.#axes.push(`axis ${axis} = fused(${members.map((x) => x.axis).join(', ')})`)
      this.#head = [axis, ...main.slice(members.length).map((x) => x.name)]
      this.#fusedMembers = members.length
      this.#uses.add('fused')
    } else if (how === 'gathered') {
      const base = this.#denseAxis('n')
      this.#list = this.#name('l')
      const list = this.#name('L')
      const length = size(c)
      this.#params[this.#list] = length
      const positions = this.#name('g0')
      const axis = this.#name('g')
      this.#axes.push(
        `axis ${positions} = dense_fixed(${this.#list})`,
        `axis ${axis} = gathered(${base}, ${list})`,
      )
      const numbers = Array.from({ length }, () => c.below(Math.max(1, this.#sizes.n)))
      this.#decls.push(`buffer ${list}: i32[${positions}] in`)
      this.#tensors[list] = { kind: 'dense', shape: [length], values: Int32Array.from(numbers), dtype: 'i32' }
      this.#buffers[list] = numbers
      out = [{ name: axis, size: 'n', axis: '', kind: 'R' }]
      this.#head = [axis]
      this.#uses.add('gathered')
    } else if (how === 'attached' && main.length > 1) {
      // A child of the tree entered by the coordinate of another axis.
      const target = second ?? main
      const parent = second ? main.at(-1)! : undefined
      const axis = this.#name('at')
      const entry = parent?.axis ?? this.#denseAxis(target[0]!.size, 1)
      this.#axes.push(`axis ${axis} = attached(${target[1]!.axis}, ${entry})`)
      const from: Coordinate[] = parent
        ? [...main]
        : [{ name: entry, size: target[0]!.size, axis: entry, kind: 'S' }]
      out = [...from, { name: axis, size: target[1]!.size, axis: '', kind: 'R' }]
      this.#head = out.map((x) => x.name)
      this.#uses.add('attached')
    } else if (how === 'join' && main.length > 1 && second) {
      // Two structures compared coordinate by coordinate: what `attach` makes one of.
      const joined = second.map((x): Coordinate => ({ ...x, kind: 'R' }))
      out = [...main, ...joined]
      this.#head = out.map((x) => x.name)
      this.#join = `${joined[0]!.name} == ${main.at(-1)!.name}`
      this.#uses.add('join')
    } else if (how === 'prefix') {
      out = main.slice(0, 1 + c.below(main.length))
      this.#head = out.map((x) => x.name)
    }
    if (this.#join === '' && c.chance(60)) {
      const axis = this.#denseAxis('d')
      const renamed = c.chance(15) ? this.#name('f') : axis
      const at = c.below(this.#head.length + 1)
      const f: Coordinate = { name: renamed, size: 'd', axis, kind: 'S' }
      const shift = this.#fusedMembers > 0 && at > 0 ? at + this.#fusedMembers - 1 : at
      out = [...out.slice(0, shift), f, ...out.slice(shift)]
      this.#head = [
        ...this.#head.slice(0, at),
        renamed === axis ? axis : `${renamed} in ${axis}`,
        ...this.#head.slice(at),
      ]
      this.#fusedAt = at === 0 ? 1 : 0
    }
    const fused = this.#fusedMembers
    const first = this.#c.chance(55) ? 'S' : 'R'
    return out.map((x, k): Coordinate => {
      const member = fused > 0 && k >= this.#fusedAt && k < this.#fusedAt + fused
      if (member) return { ...x, kind: first }
      return { ...x, kind: x.kind === 'R' ? 'R' : this.#c.chance(45) ? 'R' : 'S' }
    })
  }

  #head: string[] = []
  /** A condition around the whole body. */
  #join = ''
  #fusedMembers = 0
  #fusedAt = 0

  #kinds(open: readonly Coordinate[]): string {
    if (this.#fusedMembers === 0) return open.map((o) => o.kind).join('')
    return open
      .filter((_, k) => k <= this.#fusedAt || k >= this.#fusedAt + this.#fusedMembers)
      .map((o) => o.kind)
      .join('')
  }

  // --- expressions ---

  /** An i32 expression that may leave the range of `size`. */
  #index(open: readonly Coordinate[], size: Size): string {
    const c = this.#c
    const exact = open.filter((o) => o.size === size)
    if (exact.length > 0 && c.chance(60)) return c.pick(exact).name
    const v = c.pick(open).name
    const list = this.#inputs.find((x) => x.dtype === 'i32' && x.sizes.length === 1)
    if (list && c.chance(30)) {
      this.#uses.add('indirect')
      const inner = open.find((o) => o.size === list.sizes[0])
      return `${list.name}[${inner ? inner.name : `${v} - 1`}]`
    }
    const form = c.pick(['+', '/', '%', '*', '-', 'rev', 'min'] as const)
    this.#uses.add(form === '/' || form === '%' ? 'div-mod' : 'affine')
    switch (form) {
      case '+':
        return `${v} + ${1 + c.below(2)}`
      case '-':
        return `${v} - ${1 + c.below(2)}`
      case '*':
        return `2 * ${v} - 1`
      case '/':
        return `(${v} - 1) / 2`
      case '%':
        return `(${v} - 3) % 2`
      case 'rev':
        return `${this.#size[size]} - 1 - ${v}`
      case 'min':
        return `min(${v} + 1, 2)`
    }
  }

  #read(open: readonly Coordinate[], input: Input): string {
    const exact = input.axes.every((a) => open.some((o) => o.axis === a && o.name !== ''))
    const index =
      exact && this.#c.chance(75)
        ? input.axes.map((a) => open.find((o) => o.axis === a)!.name)
        : input.sizes.map((s) => this.#index(open, s))
    return `${input.name}[${index.join(', ')}]`
  }

  #cast(text: string, from: Dtype): string {
    if (from === this.#type) return text
    return this.#type === 'bool' ? `(${text} != 0)` : `${this.#type}(${text})`
  }

  #leaf(open: readonly Coordinate[]): string {
    const c = this.#c
    const kind = c.pick(['read', 'read', 'read', 'read', 'read', 'coordinate', 'literal', 'scalar'] as const)
    if (kind === 'scalar' && this.#scalars.length > 0) {
      const s = c.pick(this.#scalars)
      return this.#cast(s.name, s.dtype)
    }
    if (kind === 'coordinate' && !this.#narrow && open.length > 0) {
      if (this.#type === 'bool') return `(${c.pick(open).name} > 1)`
      return this.#cast(c.pick(open).name, 'i32')
    }
    if (kind === 'literal') return this.#type === 'bool' ? 'true' : `${this.#type}(${c.pick([1, 0, 2])})`
    const input = c.pick(this.#inputs)
    return this.#cast(this.#read(open, input), input.dtype)
  }

  #value(open: readonly Coordinate[], depth = 2): string {
    const c = this.#c
    if (depth === 0 || c.chance(25)) return this.#leaf(open)
    const a = (): string => this.#value(open, depth - 1)
    if (this.#type === 'bool') {
      const form = c.pick(['and', 'or', 'not', 'leaf'] as const)
      this.#uses.add(form)
      if (form === 'leaf') return this.#leaf(open)
      return form === 'not' ? `(not ${a()})` : `(${a()} ${form} ${a()})`
    }
    const wide = [
      '*',
      '+',
      '-',
      'max',
      'select',
      'abs',
      'neg',
      ...(isFloat(this.#type) ? ['floor'] : ['/', '%']),
    ]
    const form = c.pick(this.#narrow ? ['max', 'select', 'min'] : wide)
    switch (form) {
      case 'max':
      case 'min':
        return `${form}(${a()}, ${a()})`
      case 'select':
        this.#uses.add('select')
        return `select(${this.#condition(open)}, ${a()}, ${a()})`
      case 'abs':
        return this.#type === 'u32' || this.#type === 'u8' ? a() : `${this.#type}(abs(${a()}))`
      case 'neg':
        return this.#type === 'u32' || this.#type === 'u8' ? a() : `${this.#type}(-(${a()}))`
      case 'floor':
        return `${c.pick(['floor', 'round', 'ceil'])}(${a()})`
      default:
        return `${this.#type}(${this.#leaf(open)} ${form} ${a()})`
    }
  }

  /** Of every kind of expression: what reads stand under is what walks over conditions have to look through. */
  #condition(open: readonly Coordinate[], depth = 2): string {
    const c = this.#c
    const compare = (): string => {
      // The same for the whole iteration: around its loops, not in them.
      if (c.chance(8)) return `${c.pick(['m', 'n', 'p', '2'])} ${c.pick(['>', '<=', '!='])} ${c.below(4)}`
      if (open.length > 0 && c.chance(30))
        return `${c.pick(open).name} ${c.pick(['>', '<=', '==', '<'])} ${c.below(4)}`
      if (this.#type === 'bool') return depth > 0 && c.chance(40) ? this.#value(open, 1) : this.#leaf(open)
      const side = (): string => (depth > 0 && c.chance(40) ? this.#value(open, 1) : this.#leaf(open))
      return `${side()} ${c.pick(['>', '<', '>=', '!=', '=='])} ${side()}`
    }
    this.#uses.add('comparison')
    if (depth === 0) return compare()
    const inner = (): string => this.#condition(open, depth - 1)
    switch (
      c.pick(['compare', 'compare', 'compare', 'compare', 'compare', 'and', 'or', 'not', 'select'] as const)
    ) {
      case 'compare':
        return compare()
      case 'and':
        return `${compare()} and ${compare()}`
      case 'or':
        return `${compare()} or ${compare()}`
      case 'not':
        this.#uses.add('not')
        return `not (${inner()})`
      case 'select':
        this.#uses.add('select')
        return `select(${compare()}, ${inner()}, ${inner()})`
    }
  }

  // --- statements ---

  /** Axes and index of a target over the S coordinates of `open`. */
  #target(open: readonly Coordinate[]): { axes: string[]; index: string[]; sizes: Size[] } {
    const spatial = open.filter((o) => o.kind === 'S')
    const stored = this.#inputs.find((x) => x.axes.length > 1 && spatial.some((s) => s.axis === x.axes[0]))
    const own = new Set<string>()
    // The tree's own axes stay together, from the root down.
    if (stored && this.#c.chance(45))
      for (const a of stored.axes) {
        if (!spatial.some((s) => s.axis === a)) break
        own.add(a)
      }
    if (own.size > 1) this.#uses.add('sparse output')
    const sizes = spatial.map((s) => s.size)
    const axes = spatial.map((s, k) =>
      own.has(s.axis)
        ? s.axis
        : this.#denseAxis(s.size, sizes.slice(0, k).filter((x) => x === s.size).length),
    )
    return { axes, index: spatial.map((s) => s.name), sizes }
  }

  #buffer(base: string, dtype: Dtype, axes: readonly string[], role: string, fill: boolean): string {
    const name = this.#name(base)
    const wide = { f16: 'f32', bf16: 'f32', i8: 'i32', u8: 'u32', f32: 'f64' } as Partial<
      Record<Dtype, Dtype>
    >
    const accumulate = this.#c.chance(12) ? wide[dtype] : undefined
    if (accumulate) this.#uses.add('accumulate')
    if (fill) this.#uses.add('fill')
    this.#decls.push(
      `buffer ${name}: ${dtype}[${axes.join(', ')}] ${role}${fill ? ' fill 1' : ''}${accumulate ? ` accumulate ${accumulate}` : ''}`,
    )
    return name
  }

  #body(open: readonly Coordinate[]): string[] {
    const c = this.#c
    const type = this.#type
    const target = this.#target(open)
    const reduces = open.some((o) => o.kind === 'R') || c.chance(25)
    const pair = this.#reducer === 'pair' && reduces
    const reducer = this.#reducer === 'pair' ? 'max' : this.#reducer
    this.#uses.add(reduces ? (pair ? 'pair' : reducer) : 'assign')
    const later = c.pick(['none', 'map', 'rows', 'nested'] as const)
    const out = (base: string, r: string): string =>
      this.#buffer(base, type, target.axes, r, type !== 'bool' && c.chance(12))
    const local = (later === 'map' || later === 'rows') && !pair && c.chance(60)
    const dense = target.axes.every((a) => [...this.#dense.values()].includes(a))
    const inout = !local && dense && c.chance(10)
    const y = out('Y', local ? 'local' : inout ? 'inout' : 'out')
    if (local) this.#uses.add('local')
    if (inout) {
      this.#uses.add('inout')
      const shape = target.sizes.map((s) => this.#sizes[s])
      const numbers = values(
        c,
        type,
        shape.reduce((a, b) => a * b, 1),
        this.#narrow,
      )
      this.#tensors[y] = { kind: 'dense', shape, values: encoded(type, numbers), dtype: type }
      this.#buffers[y] = numbers
    }
    const y2 = pair ? out('Y', 'out') : ''
    const element = (b: string): string => `${b}[${target.index.join(', ')}]`
    const update = (e: () => string): string =>
      pair
        ? `(${element(y)}, ${element(y2)}) pair= (${e()}, ${e()})`
        : `${element(y)} ${reduces ? reducer : ''}= ${e()}`
    const written: string[] = []
    let value = (): string => this.#value(open)
    if (c.chance(25)) {
      const t = this.#name('t')
      written.push(`let ${t} = ${this.#value(open)}`)
      this.#uses.add('let')
      const plain = value
      value = () => (c.chance(50) ? t : plain())
    }
    const shape = c.pick(['plain', 'plain', 'plain', 'if', 'else'] as const)
    if (shape === 'plain') written.push(update(value))
    else {
      this.#uses.add(shape)
      written.push(
        `if (${this.#condition(open)}) { ${update(value)} }${shape === 'else' ? ` else { ${update(value)} }` : ''}`,
      )
    }
    const where = c.chance(15) ? ` where (${this.#condition(open)})` : ''
    if (where !== '') this.#uses.add('where')
    const inner = this.#join === '' ? written : [`if (${this.#join}) {`, ...written.map((l) => `  ${l}`), '}']
    const name = this.#name('first')
    const kinds = this.#kinds(open)
    if (later === 'nested' && this.#fusedMembers === 0 && open.length > 1 && open[0]!.kind === 'S')
      return this.#nested(name, open, kinds, inner)
    const lines = [
      `iterate ${name} [${this.#head.join(', ')}]${kinds ? ` as ${kinds}` : ''}${where} {`,
      ...inner.map((l) => `  ${l}`),
      '}',
    ]
    if (later === 'map' || later === 'rows') lines.push(...this.#later(y, target, later))
    return lines
  }

  /** The first iterator in a separate iteration, the rest inside of it, and something after them. */
  #nested(name: string, open: readonly Coordinate[], kinds: string, inner: readonly string[]): string[] {
    this.#uses.add('nested')
    const outer = open[0]!
    const z = this.#buffer('Z', this.#type, [this.#denseAxis(outer.size)], 'out', false)
    return [
      `iterate ${this.#name('outer')} [${this.#head[0]}] as ${kinds[0]} {`,
      `  iterate ${name} [${this.#head.slice(1).join(', ')}] as ${kinds.slice(1)} {`,
      ...inner.map((l) => `    ${l}`),
      '  }',
      `  ${z}[${outer.name}] = ${this.#value([outer])}`,
      '}',
    ]
  }

  /** An iteration that nothing needs. */
  #spare(size: Size): string[] {
    this.#uses.add('spare')
    const axis = this.#denseAxis(size)
    const u = this.#buffer('U', this.#type, [axis], 'local', false)
    const value = this.#value([{ name: axis, size, axis, kind: 'S' }])
    return [`iterate ${this.#name('spare')} [${axis}] as S { ${u}[${axis}] = ${value} }`]
  }

  /** A second iteration over what the first one wrote. */
  #later(
    y: string,
    target: { axes: string[]; index: string[]; sizes: Size[] },
    how: 'map' | 'rows',
  ): string[] {
    const c = this.#c
    const iters = target.axes.map((a) => a)
    const all = iters.map((a, k): Coordinate => ({ name: a, size: target.sizes[k]!, axis: a, kind: 'S' }))
    const here = `${y}[${iters.join(', ')}]`
    const rows = how === 'rows' && all.length > 0
    const last = rows ? c.below(all.length) : -1
    const kept = all.filter((_, k) => k !== last)
    const z = this.#buffer(
      'Z',
      this.#type,
      kept.map((x) => x.axis),
      'out',
      false,
    )
    const goal = `${z}[${kept.map((x) => x.name).join(', ')}]`
    const second = this.#name('second')
    const letters = all.map((_, k) => (k === last ? 'R' : 'S')).join('')
    this.#uses.add(how)
    const reducer =
      this.#type === 'bool'
        ? 'or'
        : this.#narrow || this.#reducer === '*'
          ? 'max'
          : c.pick(['+', 'max', 'min'])
    const statement = rows
      ? `${goal} ${reducer}= ${here}`
      : this.#type === 'bool'
        ? `${goal} = not ${here}`
        : `${goal} = ${c.pick([`max(${here}, ${this.#type}(1))`, `select(${here} > ${this.#type}(0), ${here}, ${this.#type}(0))`])}`
    return [
      `iterate ${second} [${iters.join(', ')}]${letters ? ` as ${letters}` : ''} {`,
      `  ${statement}`,
      '}',
    ]
  }
}

function encoded(dtype: Dtype, numbers: readonly number[]): NonNullable<Tensor['values']> {
  const out = newValues(dtype, numbers.length)
  const write = encoder(dtype)
  numbers.forEach((x, k) => {
    out[k] = write ? write(x, k) : x
  })
  return out
}
