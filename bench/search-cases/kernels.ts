/** The kernels of a case: by hand, of the space, what runs unasked, and the routines of libraries. */

import type { Built } from '../../src/api/built/built.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { type Kernel, load, SptError } from '../../src/node.ts'
import type { Random } from '../../src/run/bind/sources/random-tensors.ts'
import type { Device } from '../../src/runtime/device.ts'
import type { KernelSpace, Point } from '../../src/search/types.ts'
import { costModel, libraryRoutines, pointKey, predictor, samplePoint } from '../../src/search.ts'
import { fieldOf, parseCandidate, widthValues } from '../gpu/candidates.ts'
import { inputs as inputsOf, structured } from '../gpu/declared.ts'
import { sources } from '../gpu/matrix.ts'
import { packageFile } from '../support.ts'
import type { SearchCase, Tried } from './case.ts'

/** Of so many drawn points, the likeliest are measured. */
const DRAWN_FOR_EACH = 3
/** Small spaces have fewer points than are asked for: so many draws for each end it. */
const DRAWS = 100
/** Of the points of the space, those that the model expects most of, and those that chance picks. */
const LIKELY = 0.5

export interface Candidate {
  readonly of: Tried['of']
  readonly text: string
  readonly point?: Point
  readonly predicted?: number | undefined
  /** Of what is a kernel of ours. */
  readonly kernel?: Kernel
  /** Of a library's routine. */
  compile?(): Promise<Built>
}

type Inputs = NonNullable<Parameters<typeof predictor>[1]>['inputs']

export class CaseKernels {
  readonly case: SearchCase
  readonly device: Device
  /** As written. */
  readonly kernel: Kernel
  readonly inputs: Inputs
  readonly space: KernelSpace<Kernel>
  /** Milliseconds that the cost model expects. */
  readonly expected: (k: Kernel) => number | undefined

  private constructor(
    of: SearchCase,
    device: Device,
    kernel: Kernel,
    inputs: Inputs,
    space: KernelSpace<Kernel>,
  ) {
    this.case = of
    this.device = device
    this.kernel = kernel
    this.inputs = inputs
    this.space = space
    const model = costModel(device.kind) && predictor(kernel, { device: device.kind, inputs })
    this.expected = (k) => {
      try {
        return model ? model(k).milliseconds : undefined
      } catch {
        return undefined
      }
    }
  }

  static async open(of: SearchCase, device: Device, folder: string): Promise<CaseKernels> {
    const [source] = sources(folder, [of.data], false).found
    const A = await source!.read()
    const kernel = (await load(packageFile(`kernels/${of.suite}.spt`))).kernel(of.suite)
    const first = inputsOf(kernel.source)[0]!.name
    const tensors = { [first]: structured(kernel.source, [A.rows, A.columns], A, A.values, 'f32') }
    const params = kernel.source.params.some((p) => p.name === 'd') ? { d: of.width } : {}
    const inputs = { tensors, params, seed: 1 }
    const space = await kernel
      .space(device.kind === 'cpu' ? 'cpu_space' : 'gpu_space')
      .bind(device, ...flatInputs(inputs))
    return new CaseKernels(of, device, kernel, inputs, space)
  }

  #own(of: Tried['of'], text: string, kernel: Kernel): Candidate {
    return { of, text, kernel, predicted: this.expected(kernel) }
  }

  #called(name: string, args: readonly number[]): string {
    const { suite } = this.case
    return `${suite}.spt:${suite}.${name}${args.length > 0 ? `(${args.join(',')})` : ''}`
  }

  #textOf(point: Point): string {
    const call = this.space.call?.(point)
    return call ? this.#called(call.name, call.args) : `${this.space.name}.spt:${pointKey(point)}`
  }

  /** What runs unasked, and libraries. */
  async others(say: (text: string) => void): Promise<Candidate[]> {
    const { routines, absent } = libraryRoutines(this.kernel, this.device)
    for (const a of absent) say(a.reason)
    const libraries = routines.map(
      (r): Candidate => ({ of: 'library', text: r.name, compile: () => r.compile() }),
    )
    return this.kernel.dispatch === null ? libraries : [...libraries, await this.chosen()]
  }

  /** What runs unasked. */
  async chosen(): Promise<Candidate> {
    const { kernel, selection } = await this.kernel.choose(this.device, ...flatInputs(this.inputs))
    return this.#own('chosen', this.#called(selection.schedule ?? '', selection.args), kernel)
  }

  /** By hand, and `also`, as candidates are written. */
  listed(also: readonly string[] = []): Candidate[] {
    const { suite, width } = this.case
    if (this.device.kind === 'cpu') return []
    const values = widthValues(width)
    const all = [
      ...fieldOf(suite, [], values).candidates,
      ...also.map((text) => parseCandidate(text, values)),
    ]
    return all.flatMap((c) => {
      if (c.kernel !== suite || this.kernel.dispatches.includes(c.schedule)) return []
      try {
        const kernel = this.kernel.schedule(c.schedule, ...c.args)
        return [this.#own('listed', this.#called(c.schedule, c.args), kernel)]
      } catch {
        return []
      }
    })
  }

  /**
   * Of the space: the likeliest of many, and as many that chance picks.
   * @param isMine others draw what is not
   */
  drawn(count: number, random: Random, until: number, isMine: (text: string) => boolean): Candidate[] {
    const all = new Map<string, Candidate>()
    for (let k = 0; k < DRAWS * count && all.size < DRAWN_FOR_EACH * count && Date.now() < until; k++) {
      const point = samplePoint(this.space, () => random.next())
      if (!point) break
      const text = this.#textOf(point)
      if (all.has(text) || !isMine(text)) continue
      try {
        all.set(text, { ...this.#own('drawn', text, this.space.kernel(point)), point })
      } catch (e) {
        if (!(e instanceof SptError)) throw e
      }
    }
    const list = [...all.values()]
    const expected = (c: Candidate): number => c.predicted ?? Number.POSITIVE_INFINITY
    const likely = [...list]
      .sort((a, b) => expected(a) - expected(b))
      .slice(0, Math.floor(LIKELY * count))
      .map((c): Candidate => ({ ...c, of: 'likely' }))
    const known = new Set(likely.map((c) => c.text))
    const others = list.filter((c) => !known.has(c.text)).slice(0, count - likely.length)
    // In turns: a case that ends early has some of each.
    return Array.from({ length: Math.max(likely.length, others.length) }, (_, k) => [likely[k], others[k]])
      .flat()
      .filter((c) => c !== undefined)
  }

  /** What a line was measured of. */
  again(t: Tried): Candidate {
    const of = { of: t.of, text: t.candidate, predicted: t.predicted }
    if (t.of === 'library') {
      const routine = libraryRoutines(this.kernel, this.device).routines.find((r) => r.name === t.candidate)
      return { ...of, compile: () => routine!.compile() }
    }
    if (t.point) return { ...of, point: t.point, kernel: this.space.kernel(t.point) }
    const [, name = '', list] = /\.spt:\w+\.(\w+)(?:\((.*)\))?$/.exec(t.candidate) ?? []
    return { ...of, kernel: this.kernel.schedule(name, ...(list ? list.split(',').map(Number) : [])) }
  }
}
