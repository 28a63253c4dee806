# Bytes of each checkpoint against a full fp32 one, and the share of rows. Set on the command line: data (columns
# step, MB, MB of a full one, % of rows touched, % of rows written), picture.
set terminal svg size 760,400 font "sans-serif,13" background "white"
set output picture
stats data using 3 name "full" nooutput
stats data using 1 name "steps" nooutput
set key outside top center horizontal samplen 2 maxrows 2
set border 11
set xlabel "batches trained"
set ylabel "MB a checkpoint"
set y2label "% of rows"
set ytics nomirror
set y2tics 0,25,100
set y2range [0:115]
set yrange [0:full_max * 1.15]
set xrange [0:steps_max * 1.03]
set boxwidth steps_max / 45.0
set style fill solid
plot full_max with lines linewidth 2 linecolor "#888888" title "full fp32, MB", \
     data using 1:2 with boxes linecolor "#2a6fbb" title "written, MB", \
     data using 1:5 axes x1y2 with linespoints pointtype 7 pointsize 0.5 linecolor "#d9822b" title "rows written, %", \
     data using 1:4 axes x1y2 with linespoints pointtype 7 pointsize 0.5 linecolor "#3a9a5c" title "rows touched, %"
