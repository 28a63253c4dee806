# Error against bytes a row: all codecs, k-means, and what no code of Gaussian rows can go below (D = 2^(-2R)). Set on
# the command line: data (the lines of bench_errors --json), rows (a kind of theirs), dim, picture.
set terminal svg size 760,440 font "sans-serif,13" background "white"
set output picture
set key outside right
set logscale xy
set xlabel "bytes a row of ".dim." elements (float32: ".(4 * dim).")"
set ylabel "mean relative l2 error"
set format y "%g"
set xtics (16, 24, 32, 48, 64, 96)
set xrange [14:110]
set yrange [0.003:0.7]
of(codec) = "< grep '\"rows\": \"".rows."\"' ".data." | grep '\"codec\": \"".codec."\"' | sed 's/.*rel_error\": \\([0-9.e-]*\\).*bytes_per_row\": \\([0-9.]*\\).*/\\2 \\1/'"
plot 2 ** (-x * 8 / dim) with lines linecolor "#888888" linewidth 2 title "Gaussian bound", \
     of("uniform symmetric") with linespoints pointtype 4 linecolor "#b0b0b0" title "uniform symmetric", \
     of("uniform asymmetric") with linespoints pointtype 6 linecolor "#2a6fbb" title "uniform", \
     of("adaptive greedy") with linespoints pointtype 8 linecolor "#d9822b" title "adaptive greedy", \
     of("adaptive refit") with linespoints pointtype 7 linecolor "#3a9a5c" title "adaptive refit", \
     of("k-means") with linespoints pointtype 2 linecolor "#a03070" title "k-means"
