/** Programs that use every part of the language, accepted as they are. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  matmul: `
    kernel matmul(m: size, n: size, d: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis jd = dense_fixed(n)
      axis f = dense_fixed(d)
      buffer A: f32[i, j] in
      buffer B: f32[jd, f] in
      buffer C: f32[i, f] out
      iterate agg [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
    }`,
  attention: `
    monoid lse(m: f32, s: f32) {
      identity (-inf, 0)
      combine (a, b) = (max(a.m, b.m),
        select(a.m > b.m, a.s + b.s * exp(b.m - a.m), select(b.m == -inf, 0, b.s + a.s * exp(a.m - b.m))))
    }
    kernel attention(m: size, n: size, d: size, scale: f32) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis c = dense_fixed(n)
      axis f = dense_fixed(d)
      buffer P: f32[i, j] in
      buffer Q: f32[i, f] in
      buffer K: f32[c, f] in
      buffer V: f32[c, f] in
      buffer S: f32[i, j] local
      buffer top: f32[i] local
      buffer sum: f32[i] local
      buffer O: f32[i, f] out
      iterate score [i, j, f] as SSR { S[i, j] += P[i, j] * Q[i, f] * K[j, f] }
      iterate norm [i, j] as SR { (top[i], sum[i]) lse= (scale * S[i, j], 1) }
      iterate mix [i, j, f] as SRS {
        let w = exp(scale * S[i, j] - top[i]) / sum[i]
        O[i, f] += w * V[j, f]
      }
    }`,
  'every axis kind': `
    kernel kinds(m: size, n: size, w: size, l: size) {
      axis i = dense_fixed(m)
      axis e = sparse_fixed(i, n, w) unordered
      axis r = dense_variable(i, n)
      axis u = sparse_variable(m) nonunique
      axis v = sparse_variable(u, n)
      axis t = sparse_variable(v, 4)
      axis q = dense_fixed(ceildiv(m, 2) * 2 + min(n, 3) - n % 2)
      axis l0 = dense_fixed(l)
      axis g = gathered(i, L)
      axis rg = attached(r, g)
      axis uv = fused(u, v)
      axis two = dense_fixed(2 * m)
      buffer L: i32[l0] in
      buffer E: i32[i, e] in
      buffer R: f64[i, r] in fill -1.5
      buffer T: f16[u, v, t] in accumulate f32
      buffer W: bool[q] in fill true
      buffer s: f64[] out
      buffer count: i32[] out
      buffer any: bool[i] out
      buffer pairs: f32[two] out
      buffer E2: i32[i, e] out
      iterate ragged [g, rg] as RR { s[] += R[g, rg] }
      iterate deep [uv, t] as RR { count[] += i32(T[u, v, t] > 0) }
      iterate flags [i, e] as SR { any[i] or= W[E[i, e]] and e % 3 != 0 }
      iterate digits [i, b in one] as SS { pairs[i * 2 + b] = f32(i) / 2 }
      iterate copy [i, e] as SS { if (not any[i]) { E2[i, e] = E[i, e] / 2 } else { E2[i, e] = -E[i, e] % 7 } }
      axis one = dense_fixed(2)
    }`,
  types: `
    kernel types(m: size, h: f16, k: i8, alpha: f64) {
      axis i = dense_fixed(m)
      buffer a: f16[i] in
      buffer b: bf16[i] in
      buffer c: i8[i] in
      buffer d: u8[i] in accumulate i32
      buffer e: u32[i] in
      buffer x: f32[i] out
      buffer y: f64[i] out
      buffer z: i32[i] out
      buffer w: i8[] out accumulate i32
      iterate it [i] as S {
        x[i] = a[i] * h + b[i] * 0.25 + f32(m)
        y[i] = alpha * 2 - pow(f64(c[i]), 2) + select(i < m - 1, 1e-3, inf)
        z[i] = c[i] * k + d[i] / 3 + i32(e[i]) % 5
        let odd = i % 2 == 1 or c[i] > 0
        if (odd and not (d[i] >= 3)) { y[i] = erf(alpha) } else if (odd) { x[i] = round(a[i]) }
      }
      iterate total [i] as R { w[] += c[i] * c[i] }
    }`,
  nested: `
    kernel nested(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      buffer A: f32[i, j] inout
      buffer t: f32[i] local
      iterate normalise [i] as S {
        iterate total [j] as R { t[i] += abs(A[i, j]) }
        let scale = select(t[i] == 0, 1, t[i])
        iterate divide [j] as S { A[i, j] = A[i, j] / scale }
      }
      iterate nothing [] { if (m > n) { iterate clear [i, j] as SS { A[i, j] = 0 } } }
    }`,
}
