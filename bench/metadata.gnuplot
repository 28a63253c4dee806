# Share of a row's bytes beside its codes, ours and two fp32 parameters with a 4-byte id, by dirty share. Set on the
# command line: data (the lines of bench_errors --json), picture.
set terminal svg size 760,400 font "sans-serif,13" background "white"
set output picture
set multiplot layout 1,3
set logscale x
set xrange [0.4:60]
set xtics (0.5, 2, 10, 25, 50)
set yrange [0:125]
set key top right samplen 2 spacing 0.9
set xlabel "% of rows dirty"
of(dim, bits, field) = "< grep '\"dim\": ".dim.", \"bits\": ".bits.", \"dirty\"' ".data." | sed 's/.*dirty\": \\([0-9.]*\\).*\"".field."\": \\([0-9.]*\\).*/\\1 \\2/'"
do for [dim in "16 64 128"] {
  set title "dim ".dim
  if (dim eq "16") { set ylabel "% of the bytes" } else { unset ylabel }
  plot for [i=1:3] of(dim, word("2 4 8", i), "metadata_share") using (100 * $1):(100 * $2) with linespoints pointtype 7 \
         pointsize 0.5 linecolor rgb word("#2a6fbb #3a9a5c #d9822b", i) title word("2 4 8", i)." bits", \
       for [i=1:3] of(dim, word("2 4 8", i), "plain_metadata_share") using (100 * $1):(100 * $2) with lines dashtype 2 \
         linecolor rgb word("#2a6fbb #3a9a5c #d9822b", i) title word("2 4 8", i).", plain"
}
unset multiplot
